/** Where a person writes. What stands here is theirs: it goes away when it is sent, and comes back when that failed. */
import type { Delivery } from "@callboard/protocol";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { FileLink, Phase } from "../../../src/shared/chat.js";
import { announce } from "../../shared/live.js";
import { usePage } from "../page.js";
import { Bar } from "./bar.js";
import { Chips } from "./chips.js";
import { Files, LIST_ID, optionId, useFiles } from "./files.js";
import { History } from "./history.js";
import { complete } from "./mention.js";
import { canStop, hasScopes } from "./stop.js";

export const COMPOSER_ID = "composer";

function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Why what is written stays here for now. */
function barred(phase: Phase, closed: boolean): string | undefined {
  switch (phase.state) {
    case "untrusted":
      return "Nothing is sent in Restricted Mode";
    case "failed":
      return "There is no server; what you write stays here";
    case "lost":
      return "This session cannot be reached; what you write stays here";
    case "loading":
      return "The session is still loading";
    default:
      return closed ? "The session is closed" : undefined;
  }
}

export function Composer(): JSX.Element {
  const page = usePage();
  const { head, phase, look, context } = page.state;
  const { session } = page;
  const field = useRef<HTMLTextAreaElement>(null);
  const [empty, setEmpty] = useState(true);
  const [note, setNote] = useState<string>();
  const [stopMenu, setStopMenu] = useState(0);
  const history = useRef(new History(() => page.saved.history(page.session)));
  const files = useFiles(page);
  const running = head?.turn !== undefined;
  const bar = barred(phase, head?.closed ?? false);

  const changed = (): void => {
    const text = field.current?.value ?? "";
    setEmpty(text.trim() === "");
    page.saved.setDraft(page.session, text);
  };

  const put = (text: string, caret = text.length): void => {
    if (field.current) {
      field.current.value = text;
      field.current.setSelectionRange(caret, caret);
      changed();
    }
  };

  /** Behind what stands there. */
  const add = (text: string): void => {
    const before = field.current?.value ?? "";
    put(before === "" || before.endsWith("\n") ? before + text : `${before}\n${text}`);
  };

  // Each session has its own draft; what was begun without one goes along to the first that comes.
  const before = useRef(session);
  useEffect(() => {
    const draft = page.saved.draft(session);
    const written = before.current === "" && session !== "" ? page.saved.draft("") : "";
    before.current = session;
    history.current.leave();
    setNote(undefined);
    if (draft === "" && written !== "") {
      page.saved.setDraft("", "");
      put(written);
    } else {
      put(draft);
    }
  }, [session]);

  useEffect(
    () =>
      page.onTold((message) => {
        if (message.type === "insert") {
          add(message.text);
          field.current?.focus();
        } else if (message.type === "focus" && message.approvalId === undefined) {
          field.current?.focus();
        } else if (message.type === "sent") {
          const sent = page.saved.sending.find((each) => each.key === message.key);
          page.saved.setSending(page.saved.sending.filter((each) => each.key !== message.key));
          if (!message.ok && sent) {
            if (sent.session === page.session || sent.session === "") {
              add(sent.text);
            } else {
              const draft = page.saved.draft(sent.session);
              page.saved.setDraft(
                sent.session,
                draft === "" ? sent.text : `${draft}\n${sent.text}`,
              );
            }
            const why = message.message ?? "It was not sent.";
            setNote(why);
            announce(why, "assertive");
          }
        }
      }),
    [page],
  );

  const send = (delivery: Delivery): void => {
    const text = field.current?.value ?? "";
    if (text.trim() === "") {
      return;
    }
    if (bar !== undefined) {
      setNote(bar);
      announce(bar, "assertive");
      return;
    }
    page.saved.remember(session, text);
    history.current.leave();
    files.close();
    put("");
    setNote(undefined);
    page.send(newKey(), text, delivery);
    field.current?.focus();
  };

  const choose = (file: FileLink): void => {
    if (files.mention && field.current) {
      const { value, selectionStart } = field.current;
      const done = complete(value, files.mention, selectionStart, file.label);
      put(done.text, done.caret);
      page.post({ type: "attach", file });
    }
    files.close();
  };

  /** Takes the keys of the list of files while it is open. */
  const inFiles = (event: KeyboardEvent): boolean => {
    const chosen = files.files[files.at];
    if (event.key === "Escape" && files.mention) {
      files.close();
    } else if (!chosen) {
      return false;
    } else if (event.key === "ArrowDown") {
      files.move(1);
    } else if (event.key === "ArrowUp") {
      files.move(-1);
    } else if (event.key === "Enter" || event.key === "Tab") {
      choose(chosen);
    } else {
      return false;
    }
    return true;
  };

  const inHistory = (event: KeyboardEvent): boolean => {
    const { value, selectionStart, selectionEnd } = event.currentTarget as HTMLTextAreaElement;
    if (
      selectionStart !== selectionEnd ||
      event.shiftKey ||
      event.altKey ||
      event.ctrlKey ||
      event.metaKey
    ) {
      return false;
    }
    let found: string | undefined;
    if (event.key === "ArrowUp" && !value.slice(0, selectionStart).includes("\n")) {
      found = history.current.back(value);
    } else if (event.key === "ArrowDown" && !value.slice(selectionStart).includes("\n")) {
      found = history.current.forward();
    }
    if (found === undefined) {
      return false;
    }
    put(found);
    return true;
  };

  /** Enter: sends, steers, or begins a line. */
  const entered = (event: KeyboardEvent): boolean => {
    if (event.key !== "Enter") {
      return false;
    }
    const mod = event.ctrlKey || event.metaKey;
    const steers = look.sendKey === "enter" ? mod : mod && event.shiftKey;
    const sends = look.sendKey === "enter" ? !event.shiftKey : mod;
    if (steers && running) {
      send("steer");
    } else if (steers || sends) {
      send(running ? "queue" : "auto");
    } else {
      return false;
    }
    return true;
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    // While a word is being composed, its keys belong to the input method; those of a chord, to VS Code.
    if (event.isComposing || event.defaultPrevented) {
      return;
    }
    if (inFiles(event) || inHistory(event) || entered(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  // Escape is heard everywhere on the page: what is open closes first, and takes it for itself.
  useEffect(() => {
    const onEscape = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) {
        return;
      }
      const { head: now } = page.state;
      if (!now || !canStop(now) || now.turn?.state === "stopping") {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
      if (hasScopes(now)) {
        setStopMenu((count) => count + 1);
      } else {
        page.post({ type: "cancel", scope: "turn" });
      }
    };
    document.addEventListener("keydown", onEscape);
    return () => {
      document.removeEventListener("keydown", onEscape);
    };
  }, [page]);

  const active = files.files.length > 0;
  return (
    <section class="composer" aria-label="Composer">
      <Chips chips={context} />
      <div class="field">
        <Files popup={files} choose={choose} />
        <textarea
          id={COMPOSER_ID}
          ref={field}
          dir="auto"
          rows={1}
          aria-label={running ? "Message: it waits for the end of the turn" : "Message"}
          aria-autocomplete="list"
          {...(active
            ? { "aria-controls": LIST_ID, "aria-activedescendant": optionId(files.at) }
            : {})}
          placeholder={
            running
              ? "Say more: it is read when the turn ends"
              : "What is to be done? @ adds a file"
          }
          onInput={(event) => {
            history.current.leave();
            setNote(undefined);
            changed();
            files.look(event.currentTarget.value, event.currentTarget.selectionStart);
          }}
          onKeyDown={onKeyDown}
          onBlur={files.close}
        />
        <Bar head={head} empty={empty} barred={bar} stopMenu={stopMenu} send={send} />
      </div>
      {note !== undefined && (
        <p class="warn" dir="auto">
          {note}
        </p>
      )}
    </section>
  );
}
