/** What is told between the messages: ends of turns, errors, notices. */
import type { JSX } from "preact";

import type { Card, Severity } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { usePage } from "../page.js";
import { ToneIcon } from "./parts.js";

type Of<K extends Card["kind"]> = Extract<Card, { kind: K }>;

interface Failure {
  text: string;
  about: string;
  setup?: true;
  retry?: () => void;
}

function Failed(props: Failure): JSX.Element {
  const page = usePage();
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
        {props.setup && (
          <div class="choices">
            <button
              type="button"
              class="choice"
              onClick={() => {
                page.run("callboard.doctor");
              }}
            >
              Set up a model
            </button>
            <button
              type="button"
              class="choice"
              onClick={() => {
                page.run("callboard.selectModel");
              }}
            >
              Choose a model
            </button>
          </div>
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
      {...(card.setup ? { setup: true } : {})}
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

const WORDS: Record<Severity, string> = { info: "Note", warning: "Warning", error: "Error" };

export function NoticeCard({ card }: { card: Of<"notice"> }): JSX.Element {
  if (card.severity !== undefined) {
    return (
      <div class={`told told-${card.severity}`}>
        <Icon name={card.severity} />
        <div class="grow">
          <p class="plain">
            <strong>{WORDS[card.severity]}: </strong>
            <bdi>{card.text}</bdi>
          </p>
          {card.about !== undefined && (
            <p class="plain dim" dir="auto">
              {card.about}
            </p>
          )}
        </div>
      </div>
    );
  }
  return (
    <p class="notice plain" dir="auto">
      {card.text}
    </p>
  );
}

export function TurnCard({ card }: { card: Of<"turn"> }): JSX.Element {
  return (
    <>
      {card.failure && <Failed {...card.failure} />}
      <p class="turn">
        <span>
          {card.tone !== "ok" && card.tone !== "plain" && <ToneIcon tone={card.tone} />}
          <bdi>{card.text}</bdi>
        </span>
      </p>
    </>
  );
}
