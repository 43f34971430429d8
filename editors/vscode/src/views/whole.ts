import type { BlobRef } from "@callboard/protocol";
import type { App } from "../app";
import { jsonLines } from "../model/approvalCard";
import type { Item } from "../model/items";

/** Of a longer text so much (bytes) is shown; the rest stays in the log, and goes along with an export. */
const BOUND = 8 * 1024 * 1024;

export interface Whole {
  name: string;
  text: string;
  language?: string;
}

/** Values of an event that are text of what it says, and not of something beside it. */
const SAID = /^\/(?:text|content\/(\d+)\/text)$/;

/** The places of an item's texts that are kept apart, in their order. */
function kept({ blobs, result }: Item): BlobRef[] {
  const found = Object.entries(blobs ?? {})
    .map(([pointer, ref]) => ({ ref, at: SAID.exec(pointer) }))
    .filter(({ at }) => at !== null)
    .sort((a, b) => Number(a.at?.[1] ?? 0) - Number(b.at?.[1] ?? 0))
    .map(({ ref }) => ref);
  return found.length === 0 && result?.blob != null ? [result.blob] : found;
}

/**
 * All of what an item says, also what its event holds only in part.
 * @throws CallError
 */
export async function wholeOf(app: App, item: Item): Promise<Whole> {
  const pieces: string[] = [];
  for (const ref of kept(item)) {
    pieces.push(await read(app, ref));
  }
  const said = pieces.length > 0 ? pieces.join("\n\n") : item.text;
  if (item.kind !== "tool") {
    return { name: item.kind, text: said, language: "markdown" };
  }
  const { call, result } = item;
  const parts: string[] = [];
  if (call) {
    parts.push([call.title, ...jsonLines(call.arguments)].join("\n"));
    if (call.rawArguments != null) {
      parts.push(call.rawArguments);
    }
  }
  for (const change of result?.changes ?? []) {
    parts.push(change.diff.trimEnd());
  }
  if (said !== "") {
    parts.push(said);
  }
  return { name: call?.title ?? result?.name ?? "tool", text: parts.join("\n\n") };
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
