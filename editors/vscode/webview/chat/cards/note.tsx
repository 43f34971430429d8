/** The words that go along with an answer. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { ChoiceCard } from "../../../src/shared/chat.js";
import { noteKeys } from "../noteKeys.js";

export function Note(props: {
  choice: ChoiceCard;
  send: (note: string | undefined) => void;
  leave: () => void;
}): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const [empty, setEmpty] = useState(true);
  const why = props.choice.note === "why";
  const id = `note-${props.choice.number}`;

  // At once: the next key belongs to it already.
  useLayoutEffect(() => {
    field.current?.focus();
  }, []);

  const send = (): void => {
    const text = field.current?.value.trim() ?? "";
    if (text !== "" || why) {
      props.send(text === "" ? undefined : text);
    }
  };

  return (
    <div class="note">
      <label for={id}>
        {why ? "What should it do instead? (Nothing: just deny)" : "Your answer"}
      </label>
      <textarea
        id={id}
        ref={field}
        rows={2}
        dir="auto"
        onKeyDown={noteKeys(send, props.leave)}
        onInput={(event) => {
          setEmpty(event.currentTarget.value.trim() === "");
        }}
      />
      <div class="choices">
        <button type="button" class="choice first" disabled={empty && !why} onClick={send}>
          {why ? (empty ? "Deny" : "Deny, and say this") : "Answer"}
        </button>
        <button type="button" class="choice" onClick={props.leave}>
          Back
        </button>
      </div>
    </div>
  );
}
