/** Why there is nothing, or nothing new, to be seen: said in words, with the way out beside it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { ChatCommand, Phase } from "../../src/shared/chat.js";
import { Icon } from "../shared/icon.js";
import { usePage } from "./page.js";
import type { ChatState } from "./state.js";

/** Before that (ms) nobody is offered to do by hand what goes on by itself. */
const PATIENCE = 2000;

type Of<S extends Phase["state"]> = Extract<Phase, { state: S }>;
/** A command, or asking again for what could not be had. */
type Way = [command: ChatCommand | "retry", label: string];

const AGAIN: Way = ["retry", "Try again"];
const RESTART: Way = ["callboard.restartServer", "Restart"];
const LOG: Way = ["callboard.showLog", "Show log"];
const SETTINGS: Way = ["callboard.serverSettings", "Settings"];
const DOCTOR: Way = ["callboard.doctor", "Doctor"];

export function Ways({ ways }: { ways: Way[] }): JSX.Element {
  const page = usePage();
  return (
    <div class="choices">
      {ways.map(([command, label], index) => (
        <button
          key={command}
          type="button"
          class={`choice${index === 0 ? " first" : ""}`}
          onClick={() => {
            if (command === "retry") {
              page.post({ type: "retry" });
            } else {
              page.run(command);
            }
          }}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

function Bones(): JSX.Element {
  return (
    <div class="bones" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}

/** True once it has lasted. */
function useLate(key: string): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    const timer = setTimeout(() => {
      setLate(true);
    }, PATIENCE);
    return () => {
      clearTimeout(timer);
    };
  }, [key]);
  return late;
}

function Starting({ words }: { words: string }): JSX.Element {
  const late = useLate(words);
  return (
    <div class="place">
      <p class="dim" role="status">
        {words}
      </p>
      <Bones />
      {late && <Ways ways={[RESTART, LOG]} />}
    </div>
  );
}

function Welcome(): JSX.Element {
  return (
    <div class="place welcome">
      <Icon name="comment-discussion" class="big" />
      <p class="lead">No session is open here.</p>
      <p class="dim">It begins with what you write below, or with one that is there.</p>
      <Ways
        ways={[
          ["callboard.newSession", "New session"],
          ["callboard.searchSessions", "Open a session"],
        ]}
      />
      <ul class="tips">
        <li>
          <kbd>@</kbd> adds a file to what you say.
        </li>
        <li>While an agent works, what you send waits for the end of its turn.</li>
        <li>An agent asks before it changes files or runs commands.</li>
      </ul>
    </div>
  );
}

function Told(props: {
  icon: string;
  words: string;
  more?: ComponentChildren;
  ways: Way[];
}): JSX.Element {
  return (
    <div class="banner" role="status">
      <Icon name={props.icon} />
      <div class="grow">
        <p class="plain" dir="auto">
          {props.words}
        </p>
        {props.more}
        {props.ways.length > 0 && <Ways ways={props.ways} />}
      </div>
    </div>
  );
}

/** So many of the last lines of a server that has ended are shown. */
const LINES = 20;

function LastWords({ lines }: { lines: string[] }): JSX.Element | null {
  return lines.length === 0 ? null : (
    <pre class="said" dir="ltr" tabIndex={0} role="group" aria-label="What the server said last">
      {lines.slice(-LINES).join("\n")}
    </pre>
  );
}

function Reconnecting({ phase }: { phase: Of<"reconnecting"> }): JSX.Element {
  const { message, lines, starting } = phase;
  const late = useLate("");
  return (
    <Told
      icon={starting ? "warning" : "sync"}
      words={starting ? `The server does not start: ${message}` : `Reconnecting… ${message}`}
      more={
        <>
          {/* One that served may have ended for any reason: it is back before one has read them. */}
          {(starting || late) && <LastWords lines={lines} />}
          <p class="dim">
            {starting ? "It is tried again by itself." : "It starts by itself again."} What you see
            stays, and what you write is kept.
          </p>
        </>
      }
      ways={starting ? [RESTART, SETTINGS, LOG, DOCTOR] : late ? [RESTART, LOG] : []}
    />
  );
}

/** What stands in the list when there is no message. */
export function EmptyPlace({ phase }: { phase: Phase }): JSX.Element {
  switch (phase.state) {
    case "none":
      return <Welcome />;
    case "starting":
      return <Starting words="The server starts…" />;
    case "loading":
      return <Starting words="Loading…" />;
    case "reconnecting":
    case "silent":
      return (
        <div class="place">
          <Bones />
        </div>
      );
    case "untrusted":
      return (
        <div class="place">
          <Icon name="workspace-untrusted" class="big" />
          <p class="lead">Restricted Mode</p>
          <p class="dim">
            Agents change files and run commands, so no server is started in a folder that you do
            not trust.
          </p>
          <Ways ways={[["callboard.manageTrust", "Manage trust"]]} />
        </div>
      );
    case "live":
      return (
        <div class="place">
          <p class="dim">Nothing was said yet. Write below.</p>
        </div>
      );
    case "failed":
    case "lost":
      return (
        <div class="place">
          <Banner phase={phase} />
        </div>
      );
  }
}

/** Whether there is no message that could stay in view. */
export function isBare(state: ChatState): boolean {
  return state.cards.length === 0 && state.approvals.length === 0;
}

/** What is said of the server and the session beside what is in the list. */
export function Banner({ phase }: { phase: Phase }): JSX.Element | null {
  switch (phase.state) {
    case "reconnecting":
      return <Reconnecting phase={phase} />;
    case "silent":
      return <Told icon="watch" words={phase.message} ways={[RESTART, LOG]} />;
    case "lost":
      return (
        <Told
          icon="warning"
          words={phase.message}
          ways={[AGAIN, ["callboard.searchSessions", "Open a session"], RESTART, LOG]}
        />
      );
    case "failed":
      return (
        <Told
          icon="error"
          words={`No server: ${phase.message}`}
          more={<LastWords lines={phase.lines} />}
          ways={[RESTART, SETTINGS, LOG, DOCTOR]}
        />
      );
    default:
      return null;
  }
}
