// An agent made with the TypeScript SDK, which does what python_agent.py does; but it resumes a session without telling
// what was said. Its argument is the module of the SDK.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const acp = await import(pathToFileURL(process.argv[2]).href);

const agent = acp.methods.agent;
const client = acp.methods.client;
const options = [
  { optionId: "no", name: "Rather not", kind: "reject_once" },
  { optionId: "yes", name: "Go ahead", kind: "allow_once" },
];
class Stopped extends Error {}

let cwd = "";
let cancel = () => {};
const kept = () => join(dirname(cwd), "typescript-sdk-agent.json");
const said = () => (existsSync(kept()) ? JSON.parse(readFileSync(kept(), "utf8")) : []);

class Turn {
  constructor(peer, sessionId) {
    this.peer = peer;
    this.sessionId = sessionId;
    this.cancelled = new Promise((resolve) => (cancel = resolve));
  }

  tell(update) {
    return this.peer.notify(client.session.update, { sessionId: this.sessionId, update });
  }

  ask(method, params) {
    return this.peer.request(method, { sessionId: this.sessionId, ...params });
  }

  say(text) {
    return this.tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }

  call(toolCallId, fields) {
    return this.tell({ sessionUpdate: "tool_call_update", toolCallId, ...fields });
  }

  async may(toolCallId) {
    const { outcome } = await this.ask(client.session.requestPermission, {
      toolCall: { toolCallId },
      options,
    });
    if (outcome.outcome === "cancelled") throw new Stopped();
    if (outcome.optionId === "yes") return true;
    await this.call(toolCallId, { status: "failed" });
    await this.say("Then not.");
    return false;
  }

  async works() {
    await this.tell({
      sessionUpdate: "agent_thought_chunk",
      content: { type: "text", text: "First think." },
    });
    await this.tell({
      sessionUpdate: "plan",
      entries: [{ content: "Look", priority: "high", status: "completed" }],
    });
    await this.tell({
      sessionUpdate: "tool_call",
      toolCallId: "look-1",
      title: "Look at a.txt",
      kind: "read",
      status: "pending",
      locations: [{ path: join(cwd, "a.txt"), line: 3 }],
    });
    const content = [{ type: "content", content: { type: "text", text: "It is empty." } }];
    await this.call("look-1", { status: "completed", content });
    await this.tell({ sessionUpdate: "usage_update", used: 321, size: 1000 });
    await this.say("Worked.");
  }

  async writes() {
    const path = join(cwd, "made.txt");
    await this.tell({
      sessionUpdate: "tool_call",
      toolCallId: "write-1",
      title: "Write made.txt",
      kind: "edit",
      status: "pending",
      locations: [{ path }],
      content: [{ type: "diff", path, oldText: null, newText: "made\n" }],
    });
    if (!(await this.may("write-1"))) return;
    await this.ask(client.fs.writeTextFile, { path, content: "made\n" });
    await this.call("write-1", { status: "completed" });
    const back = await this.ask(client.fs.readTextFile, { path });
    await this.say(`It has '${JSON.stringify(back.content).slice(1, -1)}'.`);
  }

  async runs() {
    const command = "echo ran > ran.txt; cat ran.txt";
    await this.tell({
      sessionUpdate: "tool_call",
      toolCallId: "run-1",
      title: command,
      kind: "execute",
      status: "pending",
      rawInput: { command },
    });
    if (!(await this.may("run-1"))) return;
    const { terminalId } = await this.ask(client.terminal.create, {
      command: "/bin/sh",
      args: ["-c", command],
      cwd,
    });
    const content = [{ type: "terminal", terminalId }];
    await this.call("run-1", { status: "in_progress", content });
    await this.ask(client.terminal.waitForExit, { terminalId });
    const { output } = await this.ask(client.terminal.output, { terminalId });
    await this.call("run-1", { status: "completed" });
    await this.ask(client.terminal.release, { terminalId });
    await this.say(`It printed '${JSON.stringify(output).slice(1, -1)}'.`);
  }

  async waits() {
    await this.say("tick");
    await this.cancelled;
    throw new Stopped();
  }
}

process.stderr.write("The agent of the TypeScript SDK has begun.\n");
acp
  .agent({ name: "typescript-sdk-agent" })
  .onRequest(agent.initialize, () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: false, sessionCapabilities: { resume: {} } },
    agentInfo: { name: "typescript-sdk-agent", version: "1" },
  }))
  .onRequest(agent.session.new, ({ params }) => {
    cwd = params.cwd;
    return { sessionId: "typescript-1" };
  })
  .onRequest(agent.session.resume, ({ params }) => {
    cwd = params.cwd;
    return {};
  })
  .onNotification(agent.session.cancel, () => cancel())
  .onRequest(agent.session.prompt, async ({ params, client: peer }) => {
    const turn = new Turn(peer, params.sessionId);
    const text = params.prompt.map((block) => block.text ?? "").join("");
    const all = [...said(), text];
    writeFileSync(kept(), JSON.stringify(all));
    const act = text.split(/\s+/).at(-1);
    try {
      if (["works", "writes", "runs", "waits"].includes(act)) await turn[act]();
      else await turn.say(all.join(" / "));
    } catch (error) {
      if (error instanceof Stopped) return { stopReason: "cancelled" };
      throw error;
    }
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
