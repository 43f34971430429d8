import type { BlobRef } from "@callboard/protocol";
import type { App } from "../app";
import type { Item } from "../model/items";

/** Of a longer text so much (bytes) is shown; the rest stays in the log, and goes along with an export. */
const BOUND = 8 * 1024 * 1024;

export interface Whole {
  name: string;
  text: string;
  language?: string;
}

/**
 * All of what an item says, also what its event holds only in part.
 * @throws CallError
 */
export async function wholeOf(app: App, item: Item): Promise<Whole> {
  const blob = Object.entries(item.blobs ?? {})[0]?.[1] ?? item.result?.blob ?? undefined;
  const said = blob ? await read(app, blob) : item.text;
  if (item.kind !== "tool") {
    return { name: item.kind, text: said, language: "markdown" };
  }
  const { call, result } = item;
  const name = call?.title ?? result?.name ?? "tool";
  const parts: string[] = [];
  if (call) {
    parts.push(`${call.name}\n${JSON.stringify(call.arguments, undefined, 2)}`);
  }
  for (const change of result?.changes ?? []) {
    parts.push(change.diff);
  }
  if (said !== "") {
    parts.push(said);
  }
  return { name, text: parts.join("\n\n") };
}

async function read(app: App, blob: BlobRef): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let offset = 0;
  const end = Math.min(blob.bytes, BOUND);
  while (offset < end) {
    const piece = await app.request("blob/read", {
      blobId: blob.blobId,
      offset,
      length: Math.min(end - offset, 512 * 1024),
    });
    const bytes = Buffer.from(piece.dataBase64, "base64");
    text += decoder.decode(bytes, { stream: true });
    offset += bytes.length;
    if (piece.eof || bytes.length === 0) {
      break;
    }
  }
  text += decoder.decode();
  return blob.bytes > end ? `${text}\n… the first ${end} of ${blob.bytes} bytes` : text;
}
