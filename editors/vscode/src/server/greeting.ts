/** What a server says of itself in its answer to `initialize`. */
import { PROTOCOL_VERSION, type HandshakeResult, type JsonObject } from "@callboard/protocol";
import { oneLine } from "../model/text";
import { CallError } from "./errors";

function object(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

function at(value: unknown, ...path: string[]): JsonObject | undefined {
  return path.reduce((found: JsonObject | undefined, name) => object(found?.[name]), object(value));
}

/** Of versions with the same, each understands the other. */
function major(version: string): string | undefined {
  return /^\d+/.exec(version)?.[0];
}

/** A program that speaks JSON-RPC, and not as Callboard does. */
export function anotherProgram(program: string | undefined): CallError {
  return new CallError(
    0,
    `${oneLine(program, 200)} is another program: it does not speak the protocol of Callboard. ` +
      "Set callboard.server.path, or correct what it names.",
  );
}

/**
 * The handshake in an answer, or why this server is of no use. What only decorates it may be missing: a later
 * server, or an earlier one, is no reason to fail.
 * @param program that answered
 */
export function greeting(
  result: unknown,
  program: string | undefined,
): { handshake: HandshakeResult } | { refusal: CallError } {
  const said = at(result, "capabilities", "experimental", "callboard");
  const version = said?.["protocolVersion"];
  if (!said || (typeof version !== "string" && typeof version !== "number")) {
    return { refusal: anotherProgram(program) };
  }
  const protocolVersion = String(version);
  if (major(protocolVersion) !== major(PROTOCOL_VERSION)) {
    const words = `the server speaks version ${oneLine(protocolVersion, 20)} of the protocol`;
    return { refusal: new CallError(0, words, { kind: "unsupportedVersion" }) };
  }
  const handshake = {
    ...said,
    protocolVersion,
    serverInfo: at(said, "serverInfo") ?? {},
    features: at(said, "features") ?? {},
    limits: at(said, "limits") ?? {},
  };
  return { handshake: handshake as unknown as HandshakeResult };
}
