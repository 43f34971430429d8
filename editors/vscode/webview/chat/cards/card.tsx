/** A card of the list: who speaks, where that changes, and what is said or done. */
import type { JSX } from "preact";

import type { Card } from "../../../src/shared/chat.js";
import { Guard } from "../../shared/guard.js";
import { kept } from "../../shared/kept.js";
import { fullTime, shortTime } from "../../shared/time.js";
import { ErrorCard, NoticeCard, TurnCard } from "./ends.js";
import { AnswerCard, PromptCard, ThoughtCard } from "./text.js";
import { Tool } from "./tool.js";

function Body({ card }: { card: Card }): JSX.Element {
  switch (card.kind) {
    case "prompt":
      return <PromptCard card={card} />;
    case "answer":
      return <AnswerCard card={card} />;
    case "thought":
      return <ThoughtCard card={card} />;
    case "tool":
      return <Tool card={card} />;
    case "notice":
      return <NoticeCard card={card} />;
    case "error":
      return <ErrorCard card={card} />;
    case "turn":
      return <TurnCard card={card} />;
  }
}

interface Props {
  card: Card;
  /** An answer to its approval is on its way, or came back: it looks different then. */
  mark: string;
  /** What was searched for is in it. */
  found: boolean;
}

function Placed({ card, found }: Props): JSX.Element {
  const time = shortTime(card.at);
  return (
    <article
      class={`card card-${card.kind}${found ? " is-found" : ""}`}
      data-card={card.id}
      aria-label={card.kind}
      aria-current={found ? "location" : undefined}
    >
      {card.speaker !== undefined && (
        <h2 class="speaker">
          <bdi>{card.speaker}</bdi>
          {time !== "" && (
            <time class="dim" dateTime={card.at} title={fullTime(card.at)}>
              {time}
            </time>
          )}
        </h2>
      )}
      <Guard
        of={card}
        instead={
          <p class="warn">{`A ${card.kind} that cannot be shown. The log of Callboard has it.`}</p>
        }
      >
        <Body card={card} />
      </Guard>
    </article>
  );
}

export const CardView = kept(Placed);
