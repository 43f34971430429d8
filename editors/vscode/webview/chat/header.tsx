/** Which session it is, whose it is, and how it stands. */
import type { JSX } from "preact";

import type { HeadCard } from "../../src/shared/chat.js";
import { useNow } from "../shared/clock.js";
import { Icon } from "../shared/icon.js";
import { elapsed } from "../shared/time.js";
import { ToneIcon } from "./cards/parts.js";
import { usePage } from "./page.js";
import type { ChatState } from "./state.js";
import { waiting } from "./state.js";

type Tone = Parameters<typeof ToneIcon>[0]["tone"];

function Since({ words, since }: { words: string; since: string | undefined }): JSX.Element {
  const now = useNow(since !== undefined);
  const for_ = elapsed(since, now);
  return (
    <>
      {words}
      {for_ !== "" && <span class="time">{` ${for_}`}</span>}
    </>
  );
}

function standing(state: ChatState, head: HeadCard): [Tone, JSX.Element | string] {
  const { turn } = head;
  const asked = waiting(state).length;
  switch (state.phase.state) {
    case "failed":
      return ["failed", "no server"];
    case "reconnecting":
      return ["waiting", "reconnecting"];
    case "silent":
      return ["waiting", "no answer"];
    case "starting":
      return ["running", "the server starts"];
    case "lost":
      return ["failed", "cannot be read"];
    case "loading":
      return ["running", "loading"];
    default:
  }
  if (turn?.state === "stopping") {
    return ["waiting", <Since key="s" words="stopping" since={turn.stoppingSince} />];
  }
  if (asked > 0) {
    return ["waiting", `${asked} to approve`];
  }
  if (turn?.state === "parked") {
    return ["stopped", "paused"];
  }
  if (turn) {
    return ["running", <Since key="r" words="running" since={turn.startedAt} />];
  }
  if (head.closed) {
    return ["stopped", "closed"];
  }
  return head.archived ? ["stopped", "archived"] : ["plain", "idle"];
}

export function Header(): JSX.Element {
  const page = usePage();
  const { head } = page.state;
  if (!head) {
    return (
      <header class="head is-empty">
        <h1 class="unseen">Callboard</h1>
      </header>
    );
  }
  const [tone, words] = standing(page.state, head);
  const title = head.title.trim() === "" ? "Untitled session" : head.title;
  return (
    <header class="head">
      {head.parent && (
        <button
          type="button"
          class="link parent"
          title={`Back to ${head.parent.title}`}
          onClick={() => {
            page.run("callboard.openParent");
          }}
        >
          <Icon name="arrow-left" />
          <bdi>{head.parent.title}</bdi>
        </button>
      )}
      <div class="head-line">
        <h1 title={head.cwd === "" ? title : `${title}\n${head.cwd}`} dir="auto">
          {title}
        </h1>
        <span class={`standing is-${tone}`}>
          <ToneIcon tone={tone} />
          <span>{words}</span>
        </span>
      </div>
    </header>
  );
}
