/** What is said: by people and by agents. */
import type { JSX } from "preact";

import type { Card } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { MenuButton } from "../../shared/menu.js";
import { usePage } from "../page.js";
import { isLong, Markdown } from "../prose/view.js";
import { File, More, useFold } from "./parts.js";

type Of<K extends Card["kind"]> = Extract<Card, { kind: K }>;

export function PromptCard({ card }: { card: Of<"prompt"> }): JSX.Element {
  const page = usePage();
  const { turnId } = card;
  return (
    <div class="prompt">
      <div class="prompt-body">
        {card.steer && (
          <p class="dim mark">
            <Icon name="debug-step-into" /> told while it worked
          </p>
        )}
        <div class="plain" dir="auto">
          {isLong(card.text) ? card.text.slice(0, 60_000) : card.text}
        </div>
        {(card.cut || isLong(card.text)) && (
          <More cardId={card.id}>Not all of it is here: open all</More>
        )}
        {card.attachments.length > 0 && (
          <ul class="attachments" aria-label="Goes along">
            {card.attachments.map((each, index) => (
              <li key={index}>
                <Icon name={typeof each === "string" ? "file-media" : "file"} />
                {typeof each === "string" ? <bdi>{each}</bdi> : <File file={each} />}
              </li>
            ))}
          </ul>
        )}
      </div>
      <MenuButton
        label="More about this message"
        icon="ellipsis"
        class="quiet"
        items={[
          {
            label: "Copy",
            icon: "copy",
            run: () => {
              page.post({ type: "copy", text: card.text });
            },
          },
          ...(turnId === undefined
            ? []
            : [
                {
                  label: "Go back to before this",
                  icon: "discard",
                  about: "Asks what is to be taken back: the talk, the files, or both",
                  run: () => {
                    page.post({ type: "rewind", turnId });
                  },
                },
              ]),
        ]}
      />
    </div>
  );
}

function Ending({ card }: { card: Of<"answer" | "thought"> }): JSX.Element {
  return (
    <>
      {card.partial && <p class="dim">(cut off here)</p>}
      {(card.cut || isLong(card.text)) && (
        <More cardId={card.id}>Not all of it is here: open all</More>
      )}
    </>
  );
}

export function AnswerCard({ card }: { card: Of<"answer" | "thought"> }): JSX.Element {
  return (
    <div
      class="answer"
      {...(card.streaming ? { "aria-busy": true, "aria-live": "off" as const } : {})}
    >
      <Markdown text={card.text} streaming={card.streaming} />
      {!card.streaming && <Ending card={card} />}
    </div>
  );
}

export function ThoughtCard({ card }: { card: Of<"answer" | "thought"> }): JSX.Element {
  const [open, toggle] = useFold(card.id, card.streaming);
  return (
    <div
      class="thought"
      {...(card.streaming ? { "aria-busy": true, "aria-live": "off" as const } : {})}
    >
      <button type="button" class="row" aria-expanded={open} onClick={toggle}>
        <Icon name={open ? "chevron-down" : "chevron-right"} />
        <span>{card.streaming ? "Thinking…" : "Thought"}</span>
      </button>
      {open && (
        <div class="thought-body">
          <Markdown text={card.text} streaming={card.streaming} />
          {!card.streaming && <Ending card={card} />}
        </div>
      )}
    </div>
  );
}
