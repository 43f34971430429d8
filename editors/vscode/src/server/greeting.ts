/** What a server says of itself in its answer to `initialize`. */
import type { HandshakeResult, JsonObject } from "@callboard/protocol";

function object(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

function at(value: unknown, ...path: string[]): JsonObject | undefined {
  return path.reduce((found: JsonObject | undefined, name) => object(found?.[name]), object(value));
}

/**
 * The handshake in an answer, undefined where it is none of a Callboard server. What only decorates it may be
 * missing: a later server, or an earlier one, is no reason to fail.
 */
export function greeting(result: unknown): HandshakeResult | undefined {
  const said = at(result, "capabilities", "experimental", "callboard");
  const version = said?.["protocolVersion"];
  if (!said || (typeof version !== "string" && typeof version !== "number")) {
    return undefined;
  }
  return {
    ...said,
    protocolVersion: String(version),
    serverInfo: at(said, "serverInfo") ?? {},
    features: at(said, "features") ?? {},
    limits: at(said, "limits") ?? {},
  } as unknown as HandshakeResult;
}
