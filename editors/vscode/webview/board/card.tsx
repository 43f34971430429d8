import type { JSX } from "preact";

import type { ColumnName, TaskCard, TaskNote, TaskVerb } from "../../src/shared/board.js";
import { Icon } from "../shared/icon.js";
import { kept } from "../shared/kept.js";
import type { Page } from "./page.js";

interface Verb {
  readonly label: string;
  readonly key: string;
  readonly icon: string;
}

const VERBS: Readonly<Record<TaskVerb, Verb>> = {
  claim: { label: "Claim", key: "c", icon: "person-add" },
  start: { label: "Start", key: "s", icon: "play" },
  complete: { label: "Complete", key: "d", icon: "check" },
  block: { label: "Block", key: "b", icon: "error" },
  release: { label: "Give back", key: "u", icon: "discard" },
  assign: { label: "Give to…", key: "a", icon: "organization" },
  spawn: { label: "Start an agent on it", key: "g", icon: "rocket" },
  cancel: { label: "Cancel it", key: "x", icon: "circle-slash" },
};

const NOTE_ICONS: Readonly<Record<TaskNote["tone"], string | undefined>> = {
  plain: undefined,
  warning: "warning",
  error: "error",
};

const ARROWS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"]);

/** What a key does on a card; false for one that does nothing there. */
function press(page: Page, card: TaskCard, column: ColumnName, event: KeyboardEvent): boolean {
  const { key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return false;
  }
  if (event.shiftKey) {
    if (key === "ArrowLeft" || key === "ArrowRight") {
      page.move(card, column, key === "ArrowLeft" ? -1 : 1);
      return true;
    }
    return false;
  }
  if (ARROWS.has(key)) {
    const next = page.beside(card.id, key);
    if (next) {
      page.focusOn(next.id);
      document.getElementById(titleId(next.id))?.focus();
    }
    return true;
  }
  if (key === "n") {
    page.post({ type: "add" });
    return true;
  } else if (key === "m") {
    page.post({ type: "write" });
    return true;
  }
  for (const [verb, { key: own }] of Object.entries(VERBS)) {
    if (key === own) {
      // Also where it cannot be done: the server says why.
      page.post({ type: "do", taskId: card.id, verb: verb as TaskVerb });
      return true;
    }
  }
  return false;
}

export function titleId(id: string): string {
  return `task-${id}`;
}

function Note({ note }: { note: TaskNote }): JSX.Element {
  const icon = NOTE_ICONS[note.tone];
  return (
    <p class={`note ${note.tone}`} dir="auto">
      {icon && <Icon name={icon} />}
      <span>{note.text}</span>
    </p>
  );
}

interface Props {
  page: Page;
  card: TaskCard;
  column: ColumnName;
  /** Tab comes to it. */
  current: boolean;
}

export const Card = kept(function DrawnCard({ page, card, column, current }: Props): JSX.Element {
  const about = `about-${card.id}`;
  const reachable = current ? 0 : -1;
  return (
    <li
      class={`card ${column}`}
      data-task={card.id}
      draggable={card.verbs.length > 0}
      onDragStart={(event) => {
        event.dataTransfer?.setData("text/plain", card.id);
      }}
      onKeyDown={(event) => {
        if (press(page, card, column, event)) {
          event.preventDefault();
          event.stopPropagation();
        }
      }}
      onFocusIn={() => {
        page.focusOn(card.id);
      }}
    >
      <button
        type="button"
        id={titleId(card.id)}
        class="title"
        dir="auto"
        tabIndex={reachable}
        aria-describedby={about}
        onClick={() => {
          page.post({ type: "show", taskId: card.id });
        }}
      >
        {card.title}
      </button>
      <div id={about} class="about">
        <p class="facts">
          {card.owner !== undefined && (
            <span class="owner">
              <Icon name="person" />
              <bdi>{card.owner}</bdi>
            </span>
          )}
          {card.facts.map((fact) => (
            <span key={fact} class="fact">
              {fact}
            </span>
          ))}
        </p>
        {card.notes.map((note) => (
          <Note key={note.text} note={note} />
        ))}
      </div>
      {card.verbs.length > 0 && (
        <div class="verbs" role="group" aria-label={`What can be done with “${card.title}”`}>
          {card.verbs.map((verb) => (
            <button
              key={verb}
              type="button"
              class="icon-button"
              tabIndex={reachable}
              title={`${VERBS[verb].label} (${VERBS[verb].key})`}
              aria-label={VERBS[verb].label}
              aria-keyshortcuts={VERBS[verb].key}
              onClick={() => {
                page.post({ type: "do", taskId: card.id, verb });
              }}
            >
              <Icon name={VERBS[verb].icon} />
            </button>
          ))}
        </div>
      )}
    </li>
  );
});
