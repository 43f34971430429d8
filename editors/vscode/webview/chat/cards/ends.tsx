/** What is told between the messages: ends of turns, errors, notices. */
import type { JSX } from "preact";

import type { Card } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { usePage } from "../page.js";
import { ToneIcon } from "./parts.js";

type Of<K extends Card["kind"]> = Extract<Card, { kind: K }>;

function Failed(props: { text: string; about: string; retry?: () => void }): JSX.Element {
  return (
    <div class="failed">
      <Icon name="error" class="tone-failed" />
      <div class="grow">
        <p class="plain" dir="auto">
          <span class="unseen">Error: </span>
          {props.text}
        </p>
        {props.about !== "" && (
          <p class="dim" dir="auto">
            {props.about}
          </p>
        )}
        {props.retry && (
          <button type="button" class="choice" onClick={props.retry}>
            <Icon name="refresh" /> Try again
          </button>
        )}
      </div>
    </div>
  );
}

export function ErrorCard({ card }: { card: Of<"error"> }): JSX.Element {
  const page = usePage();
  return (
    <Failed
      text={card.text}
      about={card.about}
      {...(card.retryable
        ? {
            retry: () => {
              page.post({ type: "retry" });
            },
          }
        : {})}
    />
  );
}

export function NoticeCard({ card }: { card: Of<"notice"> }): JSX.Element {
  return (
    <p class="notice plain" dir="auto">
      {card.text}
    </p>
  );
}

export function TurnCard({ card }: { card: Of<"turn"> }): JSX.Element {
  return (
    <>
      {card.failure && <Failed text={card.failure.text} about={card.failure.about} />}
      <p class="turn">
        <span>
          {card.tone !== "ok" && card.tone !== "plain" && <ToneIcon tone={card.tone} />}
          <bdi>{card.text}</bdi>
        </span>
      </p>
    </>
  );
}
