/** The agent's plan, above the composer: what is done, what it is at, what is left. */
import type { JSX } from "preact";

import type { PlanCard } from "../../src/shared/chat.js";
import { Icon } from "../shared/icon.js";
import { useFold } from "./cards/parts.js";

const STATES = {
  completed: ["pass-filled", "done"],
  in_progress: ["play-circle", "in progress"],
  pending: ["circle-large-outline", "to do"],
} as const;

export function Plan({ plan }: { plan: PlanCard }): JSX.Element {
  const [open, toggle] = useFold("plan", false);
  const at = plan.entries.find((entry) => entry.status === "in_progress");
  const total = plan.entries.length;
  return (
    <section class="panel plan" aria-label="Plan">
      <button type="button" class="row" aria-expanded={open} onClick={toggle}>
        <Icon name={open ? "chevron-down" : "chevron-right"} />
        <span class="panel-title">Plan</span>
        <span class="dim" title={`${plan.done} of ${total} done`}>
          <span aria-hidden="true">{`${plan.done}/${total}`}</span>
          <span class="unseen">{`${plan.done} of ${total} done`}</span>
        </span>
        {!open && at && (
          <span class="grow clipped" dir="auto">
            {at.text}
          </span>
        )}
      </button>
      {open && (
        <ol>
          {plan.entries.map((entry, index) => {
            const [icon, words] = STATES[entry.status];
            return (
              <li key={index} class={`is-${entry.status}`}>
                <Icon name={icon} />
                <span class="unseen">{`${words}: `}</span>
                <span dir="auto">{entry.text}</span>
                {entry.high && <span class="dim"> (important)</span>}
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}
