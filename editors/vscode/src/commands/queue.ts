/** Prompts that wait: changed, dropped, or told to the agent that runs. */
import type { Content } from "@callboard/protocol";
import * as vscode from "vscode";
import { wellFormed } from "../model/text";
import { CallError } from "../server/errors";
import type { OpenSession } from "../session";

/** What a prompt that waits holds besides its text. @throws CallError with kind `promptNotFound` */
async function besides(open: OpenSession, eventSeq: number): Promise<Content[]> {
  let cursor: string | undefined;
  do {
    const page = await open.app.request("session/queue", {
      sessionId: open.id,
      ...(cursor === undefined ? {} : { cursor }),
    });
    const found = page.data.find((prompt) => prompt.eventSeq === eventSeq);
    if (found) {
      return found.content.filter((block) => block.type !== "text");
    }
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  throw new CallError(0, "It does not wait any more: the agent has read it.", {
    kind: "promptNotFound",
  });
}

/** @throws CallError */
export async function editQueued(open: OpenSession, eventSeq: number, text: string): Promise<void> {
  if (text.trim() === "") {
    await removeQueued(open, eventSeq);
    return;
  }
  const rest = await besides(open, eventSeq);
  await open.app.change("session/queueUpdate", {
    sessionId: open.id,
    eventSeq,
    content: [{ type: "text", text: wellFormed(text) }, ...rest],
  });
}

/** @throws CallError */
export async function removeQueued(open: OpenSession, eventSeq: number): Promise<void> {
  await open.app.change("session/queueRemove", { sessionId: open.id, eventSeq });
}

/**
 * Tells the running agent at its next step what would have waited for the end of the turn.
 * @param giveBack gets the text when it waits no more and could not be said either
 * @throws CallError
 */
export async function steerQueued(
  open: OpenSession,
  eventSeq: number,
  giveBack: (text: string) => void,
): Promise<void> {
  const item = open.transcript.queue.find((each) => each.seq === eventSeq);
  if (!item) {
    throw new CallError(0, "It does not wait any more: the agent has read it.");
  }
  if (!open.transcript.turn) {
    void vscode.window.setStatusBarMessage(
      "No turn runs that could be steered; it is read next",
      5000,
    );
    return;
  }
  const content = await besides(open, eventSeq);
  await removeQueued(open, eventSeq);
  try {
    await open.prompt({ text: item.text, delivery: "steer", content });
  } catch (fault) {
    giveBack(item.text);
    throw fault;
  }
}
