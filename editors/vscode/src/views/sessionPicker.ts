/** A session, picked from a list at the top of the window. */
import type { Session } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import type { SessionListing } from "../listing";
import { age, arrange, HEADINGS, stateOf, used, type Row } from "../model/rows";
import { sessionName } from "../model/store";
import { label } from "../model/text";
import { explain } from "../server/errors";
import { iconOf } from "./sessionItem";

/** A letter after another is one question to the server, once nothing was typed for so long (ms). */
export const TYPED_MS = 200;

interface Entry extends vscode.QuickPickItem {
  session?: Session;
}

/** The entries, those that need somebody first. Pure but for what an entry is. */
export function entries(app: Pick<App, "sessions" | "approvals">, now: number): Entry[] {
  const { shown } = arrange([...app.sessions.byId.values()], {
    folders: [],
    all: true,
    approvals: app.approvals,
  });
  const all: Entry[] = [];
  let group: Row["group"] | undefined;
  for (const row of shown) {
    if (row.group !== group) {
      group = row.group;
      all.push({ label: HEADINGS[group], kind: vscode.QuickPickItemKind.Separator });
    }
    all.push(entry(row, now));
  }
  return all;
}

function entry(row: Row, now: number): Entry {
  const { session } = row;
  const spent = used(session.usage);
  return {
    session,
    label: `$(${iconOf(row).id}) ${label(sessionName(session), 80)}`,
    description: [
      stateOf(session, row.group),
      label(session.profile, 40),
      age(session.updatedAt, now),
      ...(spent === "" ? [] : [spent]),
    ].join(" · "),
    detail: label(session.cwd, 120),
  };
}

/** Older ones than those that are known come as one types. */
export async function pickSession(
  app: App,
  listing: SessionListing,
  title: string,
): Promise<Session | undefined> {
  const picker = vscode.window.createQuickPick<Entry>();
  let typing: NodeJS.Timeout | undefined;
  const fill = (): void => {
    const active = picker.activeItems[0]?.session?.sessionId;
    picker.items = entries(app, Date.now());
    const again = picker.items.find((item) => item.session?.sessionId === active);
    if (active !== undefined && again) {
      picker.activeItems = [again];
    }
    picker.busy = !app.sessions.loaded;
  };
  const find = async (words: string): Promise<void> => {
    picker.busy = true;
    try {
      await listing.named(words);
    } catch (fault) {
      app.log.warn(`sessions cannot be looked for: ${explain(fault)}`);
    } finally {
      picker.busy = false;
    }
  };
  picker.title = title;
  picker.placeholder = "Title, agent or folder";
  picker.matchOnDescription = true;
  picker.matchOnDetail = true;
  const off = app.on("sessions", fill);
  app.start();
  fill();
  try {
    return await new Promise<Session | undefined>((resolve) => {
      picker.onDidChangeValue((words) => {
        clearTimeout(typing);
        if (app.sessions.more && words.trim() !== "") {
          typing = setTimeout(() => void find(words.trim()), TYPED_MS);
        }
      });
      picker.onDidAccept(() => {
        const chosen = picker.activeItems[0]?.session;
        if (chosen) {
          resolve(chosen);
          picker.hide();
        }
      });
      picker.onDidHide(() => {
        resolve(undefined);
      });
      picker.show();
    });
  } finally {
    clearTimeout(typing);
    off();
    picker.dispose();
  }
}
