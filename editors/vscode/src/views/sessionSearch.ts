/** Search over all that was said and printed, as one types. */
import type { SearchHit, Session } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { age } from "../model/rows";
import { sessionName } from "../model/store";
import { label } from "../model/text";
import { explain } from "../server/errors";
import { TYPED_MS } from "./sessionPicker";

const PAGE = 50;
/** So many sessions by their titles come before what was said. */
const TITLES = 10;

const KINDS: Readonly<Record<string, string>> = {
  message: "said",
  prompt_updated: "said",
  directive: "told",
  tool_result: "printed",
  summary: "summary",
  notice: "notice",
};

interface Found extends vscode.QuickPickItem {
  sessionId?: string;
  /** Of the event that was found, where it is not the session itself. */
  seq?: number;
  /** Leads to older hits. */
  cursor?: string;
}

/** What was found, as entries that the list does not sort out by itself: the server has looked. */
export function foundEntries(
  titles: readonly Session[],
  hits: readonly SearchHit[],
  cursor: string | undefined,
  now: number,
): Found[] {
  const found: Found[] = [
    ...titles.map((session) => ({
      sessionId: session.sessionId,
      label: `$(comment-discussion) ${label(sessionName(session), 100)}`,
      description: age(session.updatedAt, now),
      detail: label(session.cwd, 120),
      alwaysShow: true,
    })),
    ...hits.map((hit) => ({
      sessionId: hit.sessionId,
      seq: hit.seq,
      label: label(hit.snippet, 160),
      description: `${KINDS[hit.type] ?? label(hit.type, 20)} · ${age(hit.at, now)}`,
      detail: label(sessionName({ sessionId: hit.sessionId, title: hit.title ?? null }), 80),
      alwaysShow: true,
    })),
  ];
  if (cursor !== undefined) {
    found.push({ label: "$(ellipsis) Older ones", cursor, alwaysShow: true });
  }
  return found;
}

const NOTHING: Found = {
  label: "Nothing was found",
  detail: "Every word must occur; a word that ends in * may go on.",
  alwaysShow: true,
};

export async function searchSessions(
  app: App,
  open: (sessionId: string, seq: number | undefined) => Promise<unknown>,
): Promise<void> {
  const picker = vscode.window.createQuickPick<Found>();
  let typing: NodeJS.Timeout | undefined;
  // What was asked for before the last letter is of no interest when it comes.
  let asked = 0;
  let titles: readonly Session[] = [];
  let hits: readonly SearchHit[] = [];

  const look = async (words: string, cursor?: string): Promise<void> => {
    asked += 1;
    const own = asked;
    picker.busy = true;
    try {
      const query = words.trim();
      const [named, page] = await Promise.all([
        cursor === undefined ? app.request("session/list", { query, limit: TITLES }) : undefined,
        app.request("session/search", {
          query,
          limit: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        }),
      ]);
      if (own !== asked) {
        return;
      }
      titles = named?.data ?? titles;
      hits = cursor === undefined ? page.data : [...hits, ...page.data];
      const found = foundEntries(titles, hits, page.nextCursor ?? undefined, Date.now());
      picker.keepScrollPosition = cursor !== undefined;
      picker.items = found.length > 0 ? found : [NOTHING];
    } catch (fault) {
      if (own === asked) {
        const detail = label(explain(fault), 300);
        picker.items = [{ label: "$(error) It cannot be searched", detail, alwaysShow: true }];
      }
    } finally {
      if (own === asked) {
        picker.busy = false;
      }
    }
  };

  picker.title = "Search Sessions";
  picker.placeholder = "Words that were said, printed, or are in a title";
  try {
    const chosen = await new Promise<Found | undefined>((resolve) => {
      picker.onDidChangeValue((words) => {
        clearTimeout(typing);
        asked += 1;
        picker.busy = false;
        if (words.trim() === "") {
          picker.items = [];
        } else {
          typing = setTimeout(() => void look(words), TYPED_MS);
        }
      });
      picker.onDidAccept(() => {
        const active = picker.activeItems[0];
        if (active?.cursor !== undefined) {
          void look(picker.value, active.cursor);
        } else if (active?.sessionId !== undefined) {
          resolve(active);
          picker.hide();
        }
      });
      picker.onDidHide(() => {
        resolve(undefined);
      });
      picker.show();
    });
    if (chosen?.sessionId !== undefined) {
      await open(chosen.sessionId, chosen.seq);
    }
  } finally {
    clearTimeout(typing);
    asked += 1;
    picker.dispose();
  }
}
