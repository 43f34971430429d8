/** What is shown of an approval: all that is needed to answer it, and what each answer does. */
import type { Actor, Approval, FileChange, Resolution } from "@callboard/protocol";
import type { ApprovalCard, ChangeCard, ChoiceCard, SubjectCard } from "../shared/chat";
import { choices, isAllowing, who } from "./answers";
import { changeCard } from "./changeCard";
import { placeLinks } from "./files";
import { list } from "./loose";
import { asText, lines, oneLine, visible } from "./text";

/** Lines of all diffs together; the whole opens as a diff of the editor. */
const DIFF_LINES = 25;

/** Of a line of what is asked about, more is shown than of what was done. */
const LINE_WIDTH = 4000;

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** So deep is a value told line by line. */
const DEPTH = 8;

function entries(value: unknown): [string, unknown][] {
  if (Array.isArray(value)) {
    return value.map((each: unknown) => ["-", each]);
  }
  return isFields(value)
    ? Object.keys(value)
        .sort()
        .map((key) => [`${oneLine(key)}:`, value[key]])
    : [];
}

/** A value of JSON, one line each. */
export function jsonLines(value: unknown, depth = 0): string[] {
  const inside = depth < DEPTH ? entries(value) : [];
  if (inside.length === 0) {
    return lines(typeof value === "string" ? value : JSON.stringify(value));
  }
  const pad = "  ".repeat(depth);
  return inside.flatMap(([name, each]) => {
    if (depth + 1 < DEPTH && entries(each).length > 0) {
      return [pad + name, ...jsonLines(each, depth + 1)];
    }
    const [first = "", ...rest] = jsonLines(each, DEPTH);
    return [`${pad}${name} ${first}`, ...rest.map((line) => `${pad}  ${line}`)];
  });
}

function changeCards(changes: readonly FileChange[], cwd?: string): ChangeCard[] {
  let left = DIFF_LINES;
  return changes.map((change) => {
    const shown = changeCard(change, { room: left, width: LINE_WIDTH }, cwd);
    left -= shown.diff.lines.length;
    return shown;
  });
}

function formFields(schema: unknown): { name: string; about: string }[] {
  const properties = isFields(schema) ? schema["properties"] : undefined;
  if (!isFields(schema) || !isFields(properties)) {
    return [];
  }
  const required = list(schema["required"] as readonly unknown[] | undefined);
  return Object.keys(properties)
    .sort()
    .map((name) => {
      const property = properties[name];
      const about = isFields(property) ? property : {};
      const { type, enum: values, description } = about;
      const told = [typeof type === "string" ? type : "anything"];
      if (required.includes(name)) {
        told.push("required");
      }
      if (Array.isArray(values)) {
        told.push(`one of ${values.map(asText).join(", ")}`);
      }
      if (typeof description === "string") {
        told.push(description);
      }
      return { name: oneLine(name), about: oneLine(told.join("; ")) };
    });
}

function subjectCard(approval: Approval, cwd?: string): SubjectCard {
  const { subject } = approval;
  switch (subject.type) {
    case "command":
      return { type: "command", command: visible(subject.command), cwd: oneLine(subject.cwd) };
    case "fileChange":
      return { type: "fileChange", changes: changeCards(list(subject.changes), cwd) };
    case "form":
      return {
        type: "form",
        message: visible(subject.message),
        fields: formFields(subject.schema),
      };
    default: {
      // One of a kind that is not known here hides nothing either.
      const known = subject.type === "toolCall" ? subject : undefined;
      const told = isFields(known?.arguments) ? known.arguments : known ? {} : subject;
      return {
        type: "toolCall",
        name: oneLine(known?.name ?? approval.tool),
        json: entries(told).length > 0 ? jsonLines(told).join("\n") : "",
        files: placeLinks(known?.locations, cwd),
      };
    }
  }
}

const LASTING = new Set(["allow_session", "allow_always", "reject_always"]);

function choiceCards(approval: Approval): ChoiceCard[] {
  return choices(approval).map(({ number, option, label, short, note }) => ({
    number,
    optionId: option.optionId,
    label,
    short,
    allows: isAllowing(option),
    lasts: LASTING.has(option.kind),
    ...(note === undefined ? {} : { note }),
  }));
}

const OUTCOMES = new Map([
  ["allowed", "Allowed"],
  ["rejected", "Denied"],
  ["cancelled", "Cancelled"],
  ["expired", "Expired"],
]);

/** All windows of this editor are the same person's, those that were closed too. */
export const OWN_CLIENTS = "vscode_";

/** Who gave an answer, as the person is told. */
export function answerer(by: Partial<Actor> | null | undefined): string | undefined {
  if (by?.kind === "client" && by.id?.startsWith(OWN_CLIENTS) === true) {
    return "you";
  }
  const name = oneLine(by?.name ?? by?.kind, 60);
  return name === "" ? undefined : name;
}

/** How an approval was answered, in a line. */
export function answeredLine({ outcome, by, feedback, reason }: Resolution): string {
  const what = OUTCOMES.get(outcome) ?? oneLine(outcome, 40);
  const whom = answerer(by);
  const why = feedback ?? reason;
  return (
    what + (whom === undefined ? "" : ` by ${whom}`) + (why == null ? "" : `: ${oneLine(why)}`)
  );
}

function answered(approval: Approval): string | undefined {
  if (approval.resolution) {
    return answeredLine(approval.resolution);
  }
  const state = approval.state ?? "pending";
  return state === "pending" ? undefined : (OUTCOMES.get(state) ?? "Answered");
}

/** Its title; not the command, which stands below as a whole. */
function titleOf(approval: Approval): string {
  const title = oneLine(approval.title);
  const { subject } = approval;
  if (subject.type === "command" && title !== "") {
    const command = oneLine(subject.command);
    if (command.startsWith(title.replace(/…$/, ""))) {
      return "Run this command";
    }
  }
  return title;
}

/** The approval, or one that asks for the tool alone where the server did not say about what. */
function complete(approval: Approval): Approval {
  const subject: unknown = approval.subject;
  const nothing = { type: "toolCall", name: asText(approval.tool), arguments: {} } as const;
  return isFields(subject) ? approval : { ...approval, subject: nothing };
}

export function approvalCard(told: Approval, look: { cwd?: string }): ApprovalCard {
  const approval = complete(told);
  const whom = who(approval);
  const said = answered(approval);
  const reason = visible(approval.reason);
  return {
    approvalId: approval.approvalId,
    kind: approval.kind === "question" ? "question" : "permission",
    title: titleOf(approval),
    risk: oneLine(approval.risk ?? "medium", 20),
    subject: subjectCard(approval, look.cwd),
    choices: said === undefined ? choiceCards(approval) : [],
    ...(whom === undefined ? {} : { who: whom }),
    ...(reason === "" ? {} : { reason }),
    ...(said === undefined ? {} : { answered: said }),
    ...(typeof approval.expiresAt === "string" ? { expiresAt: approval.expiresAt } : {}),
  };
}
