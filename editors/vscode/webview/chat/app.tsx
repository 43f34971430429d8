/** The page as a whole. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { QueuedCard } from "../../src/shared/chat.js";
import { Guard } from "../shared/guard.js";
import { Icon } from "../shared/icon.js";
import { Composer, COMPOSER_ID } from "./composer/composer.js";
import { Header } from "./header.js";
import { MessageList } from "./list.js";
import { PageProvider, usePage } from "./page.js";
import type { Page } from "./page.js";
import { Banner, EmptyPlace, isBare } from "./phases.js";
import { Plan } from "./plan.js";
import { Queue } from "./queue.js";

/** What waits, and what has left the composer and is told by nobody yet. */
function queueOf(page: Page): QueuedCard[] {
  const { queue } = page.state;
  const known = new Set(queue.flatMap((each) => [each.id, each.text.trim()]));
  const mine = page.saved.sending.filter(
    (each) => each.session === page.session && !known.has(each.key) && !known.has(each.text.trim()),
  );
  return [
    ...queue,
    ...mine.map((each): QueuedCard => ({
      id: each.key,
      text: each.text,
      delivery: "auto",
      attachments: [],
      editable: false,
    })),
  ];
}

function Elsewhere(): JSX.Element | null {
  const page = usePage();
  const { elsewhere } = page.state;
  if (elsewhere === 0) {
    return null;
  }
  return (
    <button
      type="button"
      class="row elsewhere"
      onClick={() => {
        page.run("callboard.nextApproval");
      }}
    >
      <Icon name="bell-dot" class="tone-waiting" />
      <span class="grow">
        {elsewhere === 1
          ? "1 approval waits in another session"
          : `${elsewhere} approvals wait in other sessions`}
      </span>
      <span class="link">Show</span>
    </button>
  );
}

/** Faults of the page itself: said, and put away by the person. */
function Faults(): JSX.Element | null {
  const [fault, setFault] = useState<string>();
  useEffect(() => {
    const onError = (event: ErrorEvent): void => {
      // A size that was looked at too often is no fault.
      if (!event.message.includes("ResizeObserver")) {
        setFault(event.message);
      }
    };
    const onRejection = (event: PromiseRejectionEvent): void => {
      setFault(String(event.reason));
    };
    window.addEventListener("error", onError);
    window.addEventListener("unhandledrejection", onRejection);
    return () => {
      window.removeEventListener("error", onError);
      window.removeEventListener("unhandledrejection", onRejection);
    };
  }, []);
  if (fault === undefined) {
    return null;
  }
  return (
    <div class="banner" role="alert">
      <Icon name="bug" />
      <p class="grow plain">
        {`Something on this page went wrong; what the agents do goes on. (${fault.slice(0, 300)})`}
      </p>
      <button
        type="button"
        class="icon-button"
        aria-label="Close"
        title="Close"
        onClick={() => {
          setFault(undefined);
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}

function Chat({ page }: { page: Page }): JSX.Element {
  const { phase, plan, head } = page.state;
  const running = head?.turn !== undefined;
  const shown = plan && plan.entries.length > 0 && (running || plan.done < plan.entries.length);
  return (
    <main class="chat">
      <button
        type="button"
        class="skip"
        onClick={() => {
          document.getElementById(COMPOSER_ID)?.focus();
        }}
      >
        Skip to the message field
      </button>
      <Header />
      <MessageList empty={<EmptyPlace phase={phase} />} />
      <div class="dock">
        <Faults />
        {!(isBare(page.state) && (phase.state === "failed" || phase.state === "lost")) && (
          <Banner phase={phase} />
        )}
        <Elsewhere />
        {shown && <Plan plan={plan} />}
        <Queue queue={queueOf(page)} running={running} />
        <Composer />
      </div>
    </main>
  );
}

/** Draws the page whenever it was told something. */
export function App({ page }: { page: Page }): JSX.Element {
  const [, draw] = useState(0);
  useEffect(
    () =>
      page.onDraw(() => {
        draw((before) => before + 1);
      }),
    [page],
  );
  return (
    <PageProvider value={page}>
      <Guard
        of={page.state.begun}
        instead={
          <main class="chat">
            <h1 class="unseen">Callboard</h1>
            <div class="place">
              <p>This chat cannot be shown. What the agents do goes on.</p>
              <button
                type="button"
                class="choice first"
                onClick={() => {
                  page.post({ type: "ready" });
                }}
              >
                Show it again
              </button>
            </div>
          </main>
        }
      >
        <Chat key="chat" page={page} />
      </Guard>
    </PageProvider>
  );
}
