/** Stops what runs, and says what that is. */
import type { JSX } from "preact";

import type { HeadCard } from "../../../src/shared/chat.js";
import { useNow } from "../../shared/clock.js";
import { Icon, IconButton } from "../../shared/icon.js";
import { MenuButton } from "../../shared/menu.js";
import type { MenuItem } from "../../shared/menu.js";
import { elapsed } from "../../shared/time.js";
import { usePage } from "../page.js";
import type { Page } from "../page.js";

/** So long (ms) it may take until more force is offered. */
const PATIENCE = 5000;

export function agents(count: number): string {
  return count === 1 ? "1 agent" : `${count} agents`;
}

/** There is more than one thing that can be meant. */
export function hasScopes(head: HeadCard): boolean {
  return head.agentsRunning > 0 || head.inGroup;
}

export function canStop(head: HeadCard | undefined): boolean {
  return head !== undefined && (head.turn !== undefined || head.agentsRunning > 0);
}

function scopes(page: Page, head: HeadCard): MenuItem[] {
  const items: MenuItem[] = [];
  if (head.turn) {
    items.push({
      label: "Stop this agent",
      icon: "debug-stop",
      ...(head.agentsRunning > 0 ? { about: `${agents(head.agentsRunning)} below it go on` } : {}),
      run: () => {
        page.post({ type: "cancel", scope: "turn" });
      },
    });
  }
  if (head.agentsRunning > 0) {
    items.push({
      label: `Stop it and ${agents(head.agentsRunning)} below`,
      icon: "type-hierarchy-sub",
      about: "What waits in the queue is dropped",
      run: () => {
        page.post({ type: "cancel", scope: "tree" });
      },
    });
  }
  if (head.inGroup) {
    items.push({
      label: "Stop the whole group…",
      icon: "organization",
      run: () => {
        page.post({ type: "interrupt", what: "group" });
      },
    });
  }
  return items;
}

function Stopping({ since }: { since: string | undefined }): JSX.Element {
  const page = usePage();
  const now = useNow(true);
  const late = since !== undefined && now - Date.parse(since) >= PATIENCE;
  if (late) {
    return (
      <button
        type="button"
        class="choice force"
        onClick={() => {
          page.post({ type: "interrupt", what: "force" });
        }}
      >
        <Icon name="debug-stop" /> Force stop
      </button>
    );
  }
  return (
    <span class="dim stopping" role="status">
      {`Stopping ${elapsed(since, now)}`}
    </span>
  );
}

export function Stop({ head, opened }: { head: HeadCard; opened: number }): JSX.Element | null {
  const page = usePage();
  if (!canStop(head)) {
    return null;
  }
  if (head.turn?.state === "stopping") {
    return <Stopping since={head.turn.stoppingSince} />;
  }
  if (hasScopes(head)) {
    return (
      <MenuButton
        label="Stop…"
        icon="debug-stop"
        class="stop"
        side="above"
        items={scopes(page, head)}
        opened={opened}
      />
    );
  }
  return (
    <IconButton
      icon="debug-stop"
      label="Stop this agent (Escape)"
      class="stop"
      onPress={() => {
        page.post({ type: "cancel", scope: "turn" });
      }}
    />
  );
}
