// The client of the TypeScript SDK, on a lead: as python_client.py, whose docstring tells the orders.
// A permission that the agent takes back is told as `{"withdrawn"}`. The argument is the module of the SDK.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { client, methods, ndJsonStream, PROTOCOL_VERSION, RequestError } = await import(
  pathToFileURL(process.argv[2]).href
);

const say = (message) => fs.writeSync(1, JSON.stringify(message) + "\n");

let kinds = [];
let waiting = [];
let conversation;

function decide(chosen) {
  kinds = chosen;
  if (kinds.length === 0) return;
  for (const go of waiting) go();
  waiting = [];
}

async function permission({ params, signal }) {
  say({ asked: params.toolCall, options: params.options, sessionId: params.sessionId });
  if (kinds.length === 0) {
    await new Promise((resolve) => {
      waiting.push(resolve);
      signal.addEventListener("abort", resolve);
    });
  }
  if (signal.aborted) say({ withdrawn: params.toolCall.toolCallId });
  for (const kind of kinds) {
    const option = params.options.find((each) => each.kind === kind);
    if (option) return { outcome: { outcome: "selected", optionId: option.optionId } };
  }
  return { outcome: { outcome: "cancelled" } };
}

const terminals = new Map();

async function createTerminal({ params }) {
  const environment = Object.fromEntries((params.env ?? []).map(({ name, value }) => [name, value]));
  const child = spawn(params.command, params.args ?? [], {
    cwd: params.cwd ?? undefined,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const terminal = { child, output: "" };
  const keep = (data) => (terminal.output += data);
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);
  terminal.exit = new Promise((resolve) => {
    child.on("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  const terminalId = `terminal-${terminals.size + 1}`;
  terminals.set(terminalId, terminal);
  say({ created: terminalId, command: [params.command, ...(params.args ?? [])] });
  return { terminalId };
}

async function killTerminal({ params }) {
  const { child, exit } = terminals.get(params.terminalId);
  if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
  await exit;
  return {};
}

async function releaseTerminal(given) {
  await killTerminal(given);
  say({ released: given.params.terminalId });
  return {};
}

const app = client({ name: "typescript-sdk" })
  .onNotification(methods.client.session.update, ({ params }) => say(params))
  .onRequest(methods.client.session.requestPermission, permission)
  .onRequest(methods.client.terminal.create, createTerminal)
  .onRequest(methods.client.terminal.output, ({ params }) => ({
    output: terminals.get(params.terminalId).output,
    truncated: false,
  }))
  .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminals.get(params.terminalId).exit)
  .onRequest(methods.client.terminal.kill, killTerminal)
  .onRequest(methods.client.terminal.release, releaseTerminal);

/** Starts an agent; what it is asked goes through `agent` until `leave` is called. */
async function connect({ command, capabilities }) {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  let leave;
  const left = new Promise((resolve) => (leave = resolve));
  const agent = await new Promise((resolve, reject) => {
    app
      .connectWith(stream, async (connected) => {
        resolve(connected);
        await left;
      })
      .then(() => child.stdin.end(), reject);
  });
  conversation = { agent, leave, exited };
  return agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: "typescript-sdk", version: "1" },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
      ...capabilities,
    },
  });
}

async function act(what, given) {
  switch (what) {
    case "connect":
      return connect(given);
    case "leave":
      conversation.leave();
      return { code: await conversation.exited };
    case "answer":
      return decide(given.kinds);
    case "session/cancel":
      return conversation.agent.notify(what, given);
    case "session/prompt": {
      const prompt = [{ type: "text", text: given.text }];
      return conversation.agent.request(what, { sessionId: given.sessionId, prompt });
    }
    case "session/new":
    case "session/load":
      return conversation.agent.request(what, { mcpServers: [], ...given });
    default:
      return conversation.agent.request(what, given);
  }
}

async function obey({ id, do: what, ...given }) {
  try {
    say({ id, result: (await act(what, given)) ?? null });
  } catch (error) {
    const { code, message, data } = error;
    say({ id, error: error instanceof RequestError ? { code, message, data } : { code: 0, message: String(error) } });
  }
}

for await (const line of createInterface({ input: process.stdin })) void obey(JSON.parse(line));
