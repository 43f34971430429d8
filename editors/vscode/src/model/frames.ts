/**
 * What another agent, or another session, has said stands in a frame that its reader's model needs and a person
 * does not: here it is taken off.
 */

/** What each frame is called to a person. */
const KINDS = new Map([
  ["agent-report", "report"],
  ["agent-question", "question"],
  ["agent-update", "news"],
  ["agent-reply", "reply"],
  ["agent-message", "message"],
  ["group-message", "message to the group"],
  ["agent-interrupt", "interrupt"],
  ["external-context", "message"],
]);

const ENTITIES = new Map([
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", '"'],
  ["&#x27;", "'"],
  ["&amp;", "&"],
]);

function unescape(text: string): string {
  return text.replace(/&#?\w+;/g, (entity) => ENTITIES.get(entity) ?? entity);
}

export interface Framed {
  body: string;
  kind: string;
  attributes: Map<string, string>;
}

/**
 * What stands in the frame of a text; absent where it has none. What the server says of the frame, in the
 * paragraph that follows it, is for the model.
 */
export function openFrame(text: string): Framed | undefined {
  const opening = /^<([a-z][a-z-]*)([^>\n]*)>\n/.exec(text);
  const [all, tag, given] = opening ?? [];
  const kind = tag && KINDS.get(tag);
  if (all === undefined || tag === undefined || given === undefined || !kind) {
    return undefined;
  }
  const closing = `\n</${tag}>`;
  const last = text.indexOf(closing, all.length - 1);
  if (last < 0) {
    return undefined;
  }
  const attributes = new Map<string, string>();
  for (const [, name, value] of given.matchAll(/([a-z-]+)="([^"]*)"/g)) {
    attributes.set(name ?? "", unescape(value ?? ""));
  }
  const rest = text.slice(last + closing.length);
  const paragraph = rest.indexOf("\n\n");
  const more = paragraph < 0 ? "" : rest.slice(paragraph + 2);
  const body = unescape(text.slice(all.length, last));
  return { body: /\S/.test(more) ? `${body}\n\n${more}` : body, kind, attributes };
}
