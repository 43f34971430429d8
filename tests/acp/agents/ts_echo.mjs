// An agent made with the TypeScript SDK, as py_echo.py is one of the Python SDK's. Its argument is the SDK's module.
import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const acp = await import(pathToFileURL(process.argv[2]).href);
const { agent: agentMethods, client: clientMethods } = acp.methods;
const stops = new Map();
const options = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

async function prompt({ params, client }) {
  const { sessionId } = params;
  const text = params.prompt.map((block) => block.text ?? "").join("");
  const stopped = new Promise((resolve) => stops.set(sessionId, resolve));
  const update = (told) => client.notify(clientMethods.session.update, { sessionId, update: told });
  const say = (said) =>
    update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: said } });
  if (text.includes("wait")) {
    await say("I wait.");
    await stopped;
    return { stopReason: "cancelled" };
  }
  if (!text.includes("run")) {
    await say(`echo: ${text}`);
    return { stopReason: "end_turn" };
  }
  const call = { toolCallId: "t1", title: "touch a.txt", kind: "execute", status: "pending" };
  await update({ sessionUpdate: "tool_call", ...call });
  const asked = { sessionId, toolCall: { toolCallId: "t1" }, options };
  const { outcome } = await client.request(clientMethods.session.requestPermission, asked);
  if (outcome.outcome === "cancelled") return { stopReason: "cancelled" };
  const allowed = outcome.optionId === "yes";
  const status = allowed ? "completed" : "failed";
  await update({ sessionUpdate: "tool_call_update", toolCallId: "t1", status });
  await say(allowed ? "done" : "refused");
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "ts-echo" })
  .onRequest(agentMethods.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: false },
    agentInfo: { name: "ts-echo", version: "1" },
  }))
  .onRequest(agentMethods.session.new, () => ({ sessionId: randomUUID() }))
  .onNotification(agentMethods.session.cancel, ({ params }) => stops.get(params.sessionId)?.())
  .onRequest(agentMethods.session.prompt, prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
