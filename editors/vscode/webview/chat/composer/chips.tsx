/** What goes along with the next message. */
import type { JSX } from "preact";

import type { ContextChip } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { usePage } from "../page.js";

const ICONS = { selection: "list-selection", file: "file", folder: "folder" };

function Chip({ chip }: { chip: ContextChip }): JSX.Element {
  const page = usePage();
  const follows = chip.kind === "selection";
  return (
    <li class={`chip${chip.on ? "" : " is-off"}`}>
      <Icon name={ICONS[chip.kind]} />
      <span class="clipped" title={chip.title}>
        <bdi>{chip.label}</bdi>
      </span>
      <button
        type="button"
        class="icon-button"
        aria-pressed={follows ? chip.on : undefined}
        aria-label={follows ? `Send ${chip.label}` : `Remove ${chip.label}`}
        title={
          follows ? (chip.on ? "It is sent: leave it out" : "It is not sent: send it") : "Remove"
        }
        onClick={() => {
          page.post({ type: "chip", id: chip.id, do: follows ? "toggle" : "remove" });
        }}
      >
        <Icon name={follows ? (chip.on ? "eye" : "eye-closed") : "close"} />
      </button>
    </li>
  );
}

export function Chips({ chips }: { chips: ContextChip[] }): JSX.Element | null {
  if (chips.length === 0) {
    return null;
  }
  return (
    <ul class="chips" aria-label="Goes along with the next message">
      {chips.map((chip) => (
        <Chip key={chip.id} chip={chip} />
      ))}
    </ul>
  );
}
