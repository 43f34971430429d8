/** What was said and is not read yet: it can be changed, dropped, or told the agent now. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { QueuedCard } from "../../src/shared/chat.js";
import { Icon, IconButton } from "../shared/icon.js";
import { noteKeys } from "./noteKeys.js";
import { usePage } from "./page.js";

function Edit({ text, done }: { text: string; done: (text?: string) => void }): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, []);
  const save = (): void => {
    const now = field.current?.value ?? "";
    done(now.trim() === "" || now === text ? undefined : now);
  };
  return (
    <div class="note">
      <textarea
        ref={field}
        rows={2}
        dir="auto"
        aria-label="Change what waits"
        defaultValue={text}
        onKeyDown={noteKeys(save, done)}
      />
      <div class="choices">
        <button type="button" class="choice first" onClick={save}>
          Save
        </button>
        <button
          type="button"
          class="choice"
          onClick={() => {
            done();
          }}
        >
          Leave as it was
        </button>
      </div>
    </div>
  );
}

function Queued({ each, running }: { each: QueuedCard; running: boolean }): JSX.Element {
  const page = usePage();
  const [editing, edit] = useState(false);
  const { eventSeq } = each;
  if (editing && eventSeq !== undefined) {
    return (
      <li>
        <Edit
          text={each.text}
          done={(text) => {
            edit(false);
            if (text !== undefined) {
              page.post({ type: "queueEdit", eventSeq, text });
            }
          }}
        />
      </li>
    );
  }
  const steers = each.delivery === "steer";
  return (
    <li class="queued">
      <Icon
        name={eventSeq === undefined ? "cloud-upload" : steers ? "debug-step-into" : "history"}
      />
      <div class="grow">
        {(each.author !== undefined || steers || eventSeq === undefined) && (
          <span class="dim">
            {[
              eventSeq === undefined ? "sending" : undefined,
              steers ? "at the next step" : undefined,
              each.author,
            ]
              .filter((part) => part !== undefined)
              .join(", ")}
            {": "}
          </span>
        )}
        <span class="clamped" dir="auto">
          {each.text.slice(0, 2000)}
        </span>
        {each.attachments.length > 0 && (
          <span class="dim">{` + ${each.attachments.join(", ")}`}</span>
        )}
      </div>
      {eventSeq !== undefined && each.editable && (
        <div class="actions">
          {running && !steers && (
            <IconButton
              icon="debug-step-into"
              label="Send now, at the next step"
              onPress={() => {
                page.post({ type: "queueSteer", eventSeq });
              }}
            />
          )}
          <IconButton
            icon="edit"
            label="Edit"
            onPress={() => {
              edit(true);
            }}
          />
          <IconButton
            icon="trash"
            label="Remove"
            onPress={() => {
              page.post({ type: "queueRemove", eventSeq });
            }}
          />
        </div>
      )}
    </li>
  );
}

export function Queue(props: { queue: QueuedCard[]; running: boolean }): JSX.Element | null {
  const { queue, running } = props;
  if (queue.length === 0) {
    return null;
  }
  const waits = queue.some((each) => each.eventSeq !== undefined);
  const words = !waits
    ? "Sending"
    : running
      ? "Waits for the end of the turn"
      : "Waits for its turn";
  return (
    <section class="panel queue" aria-label="Queue">
      <h2 class="panel-title">{words}</h2>
      <ul>
        {queue.map((each) => (
          <Queued key={each.id} each={each} running={running} />
        ))}
      </ul>
    </section>
  );
}
