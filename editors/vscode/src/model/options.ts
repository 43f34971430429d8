/**
 * What the agents of a session that are programs of their own let it be set to: their models, modes and other options,
 * as they have told. Pure.
 */
import type { Mode, Session, SessionOption } from "@callboard/protocol";
import { list } from "./loose";

type Having = Pick<Session, "options" | "members">;

/** Those that are modes. */
export function modeOptions(session: Having | undefined): SessionOption[] {
  return list(session?.options).filter(({ category }) => category === "mode");
}

/** All others: models, how much is thought, and whatever else there is. */
export function otherOptions(session: Having | undefined): SessionOption[] {
  return list(session?.options).filter(({ category }) => category !== "mode");
}

/** What the value that an option has is called. Raw: whoever shows it cleans it. */
export function valueOf(option: SessionOption): string {
  return list(option.values).find(({ value }) => value === option.value)?.name ?? option.value;
}

const isRoom = (session: Having): boolean => list(session.members).length > 0;

/** The values of some options, with their agents where there are several. */
function told(session: Having, options: readonly SessionOption[]): string | undefined {
  const found = options.map((option) =>
    isRoom(session) ? `${option.profile} ${valueOf(option)}` : valueOf(option),
  );
  return found.length > 0 ? found.join(", ") : undefined;
}

export interface WorksWith {
  model?: string;
  /** As agents that are programs of their own call theirs. */
  agentModel?: string;
  agentMode?: string;
}

/**
 * With what a session works. Callboard's own mode comes first: one of an agent counts while that is `work`. An agent
 * that has a model of its own does not use the session's, which in a room others may. Raw, as `valueOf`.
 */
export function worksWith(
  session: Having,
  mode: Mode | undefined,
  model: string | null | undefined,
): WorksWith {
  const models = otherOptions(session).filter(({ category }) => category === "model");
  const agentModel = told(session, models);
  const agentMode = mode === "work" ? told(session, modeOptions(session)) : undefined;
  const counts = agentModel === undefined || isRoom(session);
  return {
    ...(counts && model != null ? { model } : {}),
    ...(agentModel === undefined ? {} : { agentModel }),
    ...(agentMode === undefined ? {} : { agentMode }),
  };
}
