/** A tool call: one line when all went well, and what it put out or changed below, folded. */
import type { JSX } from "preact";

import type { Card, ChangeCard } from "../../../src/shared/chat.js";
import { useNow } from "../../shared/clock.js";
import { Icon } from "../../shared/icon.js";
import { elapsed } from "../../shared/time.js";
import { usePage } from "../page.js";
import { Approval } from "./approval.js";
import { Counts, File, Lines, lines, ToneIcon, useFold } from "./parts.js";

type ToolCard = Extract<Card, { kind: "tool" }>;

const KINDS: Record<string, string> = {
  read: "eye",
  edit: "edit",
  delete: "trash",
  move: "arrow-right",
  search: "search",
  execute: "terminal",
  think: "lightbulb",
  fetch: "globe",
};

const OPERATIONS: Record<string, string> = {
  create: "diff-added",
  modify: "diff-modified",
  delete: "diff-removed",
  move: "diff-renamed",
};

function Elapsed({ since }: { since: string }): JSX.Element {
  return <>{elapsed(since, useNow(true))}</>;
}

/** In the words of the list of changes. */
const VERDICTS = { pending: "new", accepted: "accepted", rejected: "put back" } as const;

/** Files that were changed, a line each, and their differences below. */
export function Changes(props: {
  changes: ChangeCard[];
  cardId?: string;
  open: boolean;
  show: (change: ChangeCard) => void;
}): JSX.Element {
  return (
    <ul class="changes">
      {props.changes.map((change) => (
        <li key={change.file.path}>
          <button
            type="button"
            class="row"
            title={`Show what changes in ${change.file.label}`}
            onClick={() => {
              props.show(change);
            }}
          >
            <Icon name={OPERATIONS[change.operation] ?? "diff"} />
            <bdi class="grow path" dir="ltr">
              {change.from === undefined ? "" : `${change.from} → `}
              {change.file.label}
            </bdi>
            <span class="unseen">{change.operation}</span>
            <Counts added={change.added} removed={change.removed} />
            {change.verdict && <span class="dim">{VERDICTS[change.verdict]}</span>}
          </button>
          {props.open && change.diff.lines.length > 0 && (
            <Lines
              of={change.diff}
              diff
              label={`Changes of ${change.file.label}`}
              {...(props.cardId === undefined ? {} : { cardId: props.cardId })}
            />
          )}
        </li>
      ))}
    </ul>
  );
}

function hiddenLines(card: ToolCard): number {
  const { output } = card;
  if (output) {
    return output.lines.length + output.above + output.below;
  }
  return card.changes.reduce(
    (sum, { diff }) => sum + diff.lines.length + diff.above + diff.below,
    0,
  );
}

export function Tool({ card }: { card: ToolCard }): JSX.Element {
  const page = usePage();
  const running = card.tone === "running";
  const [open, toggle] = useFold(card.id, running);
  const { approval, output } = card;
  if (approval && approval.answered === undefined) {
    return <Approval approval={approval} />;
  }
  const hidden = hiddenLines(card);
  const kind = KINDS[card.tool] ?? "tools";
  const told = card.tone === "ok" ? undefined : card.state;
  const inner = (
    <>
      <ToneIcon tone={card.tone} />
      <Icon name={kind} class="dim" />
      <span class="title" dir="auto">
        <bdi>{card.title}</bdi>
      </span>
      <span class="about">
        <span class={card.tone === "ok" ? "unseen" : `state is-${card.tone}`}>
          {told ?? card.state}
        </span>
        {running && card.startedAt ? (
          <span class="dim time">
            <Elapsed since={card.startedAt} />
          </span>
        ) : (
          card.duration && <span class="dim time">{card.duration}</span>
        )}
        {!open && hidden > 1 && <span class="dim count">{lines(hidden)}</span>}
      </span>
      {hidden > 0 && <Icon name={open ? "chevron-down" : "chevron-right"} class="dim fold" />}
    </>
  );
  return (
    <div class={`tool is-${card.tone}`}>
      {hidden > 0 ? (
        <button type="button" class="row" aria-expanded={open} title={card.name} onClick={toggle}>
          {inner}
        </button>
      ) : (
        <div class="row" title={card.name}>
          {inner}
        </div>
      )}
      <div class="tool-body">
        {approval?.answered !== undefined && (
          <p class="dim answered" dir="auto">
            {approval.answered}
          </p>
        )}
        {card.changes.length > 0 && (
          <Changes
            changes={card.changes}
            cardId={card.id}
            open={open}
            show={(change) => {
              page.post({ type: "openDiff", cardId: card.id, path: change.file.path });
            }}
          />
        )}
        {open && output && output.lines.length > 0 && (
          <Lines of={output} label={`Output of ${card.title}`} cardId={card.id} />
        )}
        {open && card.files.length > 0 && (
          <p class="files">
            {card.files.map((file, index) => (
              <File key={index} file={file} />
            ))}
          </p>
        )}
      </div>
    </div>
  );
}
