/** What waits for the person's answer: all that is needed to give it, and what each answer does. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { ApprovalCard, ChoiceCard } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { announce } from "../../shared/live.js";
import { shortTime } from "../../shared/time.js";
import { usePage } from "../page.js";
import type { Page } from "../page.js";
import { Note } from "./note.js";
import { Subject } from "./subject.js";

/** Longer words are too much for a button; they stand in a line below. */
const BUTTON = 30;

function words(choice: ChoiceCard): string {
  const { label, short } = choice;
  if (label.length <= BUTTON) {
    return label;
  }
  const cut = short.length > BUTTON ? `${short.slice(0, BUTTON - 1)}…` : short;
  return cut.charAt(0).toUpperCase() + cut.slice(1);
}

/** Whether it refuses for good what another one allows for good: then one line says what both are about. */
function mirrors(choice: ChoiceCard, approval: ApprovalCard): boolean {
  const opposite = choice.label.replace(/^Always reject/, "Always allow");
  return opposite !== choice.label && approval.choices.some(({ label }) => label === opposite);
}

/** True for the moment in which nothing answers it. */
function useHeld(page: Page, approval: ApprovalCard): boolean {
  const rest = page.arrivals.rest(approval.approvalId, performance.now());
  const [looked, again] = useState(0);
  useEffect(() => {
    if (rest <= 0) {
      return undefined;
    }
    const timer = setTimeout(() => {
      again((count) => count + 1);
    }, rest + 1);
    return () => {
      clearTimeout(timer);
    };
  }, [rest, looked]);
  return rest > 0;
}

function Choice(props: {
  choice: ChoiceCard;
  first: boolean;
  held: boolean;
  disabled: boolean;
  press: () => void;
}): JSX.Element {
  const { choice } = props;
  return (
    <button
      type="button"
      class={`choice ${choice.allows ? "allows" : "denies"}${props.first ? " first" : ""}`}
      title={`${choice.label} (Alt+${choice.number})`}
      aria-keyshortcuts={`Alt+${choice.number}`}
      aria-disabled={props.held || props.disabled}
      onClick={props.press}
    >
      <span dir="auto">{words(choice)}</span>
      <kbd>{choice.number}</kbd>
      {words(choice) !== choice.label && <span class="unseen">{`: ${choice.label}`}</span>}
    </button>
  );
}

function Head({ approval, id }: { approval: ApprovalCard; id: string }): JSX.Element {
  const question = approval.kind === "question";
  return (
    <header>
      <Icon name={question ? "question" : "shield"} />
      <h3 id={`${id}-title`} dir="auto">
        <bdi>{approval.title}</bdi>
      </h3>
      {!question && <span class={`risk risk-${approval.risk}`}>{`${approval.risk} risk`}</span>}
    </header>
  );
}

function domId(approval: ApprovalCard): string {
  return `approval-${approval.approvalId.replace(/[^\w-]/g, "_")}`;
}

/** What it says besides what it is about. */
function About({ approval }: { approval: ApprovalCard }): JSX.Element {
  const expires = shortTime(approval.expiresAt);
  return (
    <>
      {approval.reason && (
        <p class="reason" dir="auto">
          <span class="dim">why: </span>
          {approval.reason}
        </p>
      )}
      {expires !== "" && <p class="dim">{`It waits until ${expires}.`}</p>}
    </>
  );
}

export function Approval({ approval }: { approval: ApprovalCard }): JSX.Element {
  const page = usePage();
  const root = useRef<HTMLElement>(null);
  const toldAt = useRef<HTMLParagraphElement>(null);
  const held = useHeld(page, approval);
  const [asked, ask] = useState<ChoiceCard>();
  const [said, say] = useState<string>();
  const id = domId(approval);
  const busy = page.answering.has(approval.approvalId);
  const refused = page.refused.get(approval.approvalId);

  useEffect(
    () =>
      page.onTold((message) => {
        if (message.type === "focus" && message.approvalId === approval.approvalId) {
          root.current?.scrollIntoView({ block: "nearest" });
          root.current?.focus({ preventScroll: true });
        }
      }),
    [page, approval.approvalId],
  );

  useEffect(() => {
    if (refused !== undefined) {
      say(refused);
    }
  }, [refused]);

  // The card may be taller than the view, and what it says stands at its end.
  useEffect(() => {
    toldAt.current?.scrollIntoView({ block: "nearest" });
  }, [said]);

  if (approval.answered !== undefined) {
    return (
      <p class="dim answered" dir="auto">
        {`${approval.title}: ${approval.answered}`}
      </p>
    );
  }

  const press = (choice: ChoiceCard): void => {
    const hold = page.arrivals.hold(approval, performance.now());
    if (hold !== undefined || busy) {
      const why = hold ?? "The answer is on its way.";
      say(why);
      announce(why, "assertive");
    } else if (choice.note) {
      say(undefined);
      ask(choice);
    } else {
      say(undefined);
      page.answer(approval, choice.optionId);
    }
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
    if (!event.altKey || event.ctrlKey || event.metaKey || digit === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const choice = approval.choices.find((each) => each.number === Number(digit));
    if (choice && !event.repeat) {
      press(choice);
    }
  };

  const lasting = approval.choices.filter(
    (choice) => (choice.lasts || words(choice) !== choice.label) && !mirrors(choice, approval),
  );
  return (
    <section
      ref={root}
      class={`approval is-${approval.kind}`}
      role="group"
      tabIndex={-1}
      data-approval={approval.approvalId}
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-subject`}
      onKeyDown={onKeyDown}
    >
      <Head approval={approval} id={id} />
      {approval.who && (
        <p class="who">
          <span class="dim">asked by </span>
          <bdi>{approval.who}</bdi>
        </p>
      )}
      <div
        id={`${id}-subject`}
        class="subject"
        tabIndex={0}
        role="group"
        aria-label="What is asked"
      >
        <Subject approval={approval} />
      </div>
      <About approval={approval} />
      {asked ? (
        <Note
          choice={asked}
          send={(note) => {
            ask(undefined);
            page.answer(approval, asked.optionId, note);
          }}
          leave={() => {
            ask(undefined);
            say(`"${approval.title}" was not answered; it still waits.`);
            root.current?.focus();
          }}
        />
      ) : (
        <div class="choices" role="group" aria-label="Answers">
          {approval.choices.map((choice, index) => (
            <Choice
              key={choice.number}
              choice={choice}
              first={index === 0 && choice.allows}
              held={held}
              disabled={busy}
              press={() => {
                press(choice);
              }}
            />
          ))}
          {approval.choices.length === 0 && (
            <p class="warn">It offers no answer. Stop the turn to go on.</p>
          )}
        </div>
      )}
      {!asked && lasting.length > 0 && (
        <ul class="lasting">
          {lasting.map((choice) => (
            <li key={choice.number}>
              <kbd>{choice.number}</kbd> <span dir="auto">{choice.label}</span>
            </li>
          ))}
        </ul>
      )}
      {busy && <p class="dim">The answer is on its way…</p>}
      {said !== undefined && (
        <p ref={toldAt} class="warn" dir="auto">
          {said}
        </p>
      )}
    </section>
  );
}
