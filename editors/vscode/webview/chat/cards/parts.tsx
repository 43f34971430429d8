/** What several cards are made of. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

import type { Excerpt, FileLink, Tone } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { usePage } from "../page.js";

const TONES: Record<Tone, string> = {
  waiting: "bell-dot",
  running: "loading",
  ok: "check",
  failed: "error",
  stopped: "circle-slash",
  plain: "circle-small-filled",
};

/** How something stands, by shape; the words stand beside it. */
export function ToneIcon({ tone }: { tone: Tone }): JSX.Element {
  return <Icon name={TONES[tone]} class={`tone-${tone}${tone === "running" ? " turning" : ""}`} />;
}

/** A file, as a link that opens it in the editor. */
export function File({ file, class: more }: { file: FileLink; class?: string }): JSX.Element {
  const page = usePage();
  return (
    <button
      type="button"
      class={`link file${more ? ` ${more}` : ""}`}
      title={file.label}
      onClick={() => {
        page.post({ type: "openFile", file });
      }}
    >
      <bdi dir="ltr">{file.label}</bdi>
    </button>
  );
}

export function lines(count: number): string {
  return `${count} ${count === 1 ? "line" : "lines"}`;
}

/** Opens the whole of what a card shows in part. */
export function More({
  cardId,
  children,
}: {
  cardId: string;
  children: ComponentChildren;
}): JSX.Element {
  const page = usePage();
  return (
    <button
      type="button"
      class="link more"
      onClick={() => {
        page.post({ type: "openWhole", cardId });
      }}
    >
      {children}
    </button>
  );
}

function diffClass(line: string): string {
  const sign = line.charAt(0);
  return sign === "+" ? "added" : sign === "-" ? "removed" : sign === "@" ? "hunk" : "";
}

/** Lines of output or of a diff, and what is left out of them. */
export function Lines(props: {
  of: Excerpt;
  label: string;
  diff?: boolean;
  /** The card whose whole can be opened. */
  cardId?: string;
}): JSX.Element {
  const { above, below, cut, lines: shown } = props.of;
  const more = (words: string): JSX.Element =>
    props.cardId === undefined ? (
      <span class="dim more">{words}</span>
    ) : (
      <More cardId={props.cardId}>{words}</More>
    );
  return (
    <div class="lines">
      {above > 0 && more(`${lines(above)} above: open all`)}
      <pre dir="ltr" tabIndex={0} role="group" aria-label={props.label}>
        {props.diff
          ? shown.map((line, index) => (
              <span key={index} class={diffClass(line)}>
                {line}
                {"\n"}
              </span>
            ))
          : shown.join("\n")}
      </pre>
      {below > 0 && more(`${lines(below)} more: open all`)}
      {below === 0 && cut && more("Not all of it is here: open all")}
    </div>
  );
}

/** Lines that were added and removed. */
export function Counts({ added, removed }: { added: number; removed: number }): JSX.Element {
  return (
    <span class="counts">
      <span class="unseen">{`${lines(added)} added, ${removed} removed`}</span>
      <span class="plus" aria-hidden="true">{`+${added}`}</span>{" "}
      <span class="minus" aria-hidden="true">{`-${removed}`}</span>
    </span>
  );
}

/** Whether a card is open: as the person left it, or as it is at first. */
export function useFold(id: string, first: boolean): [boolean, () => void] {
  const page = usePage();
  const [chosen, choose] = useState(() => page.saved.fold(id));
  const open = chosen ?? first;
  return [
    open,
    () => {
      page.saved.setFold(id, !open);
      choose(!open);
    },
  ];
}
