/** What an agent that is a program of its own lets its session be set to, chosen where models are. */
import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import { api, at, root } from "../changing";
import { answering, type Answer } from "../dialogs";
import { test, until } from "../runner";

export { run } from "../runner";

/** Picks the entry of a list that says this. */
function pick(label: string): Answer {
  return ({ words, choices }) => {
    const found = (choices as vscode.QuickPickItem[]).find((each) => each.label === label);
    assert.ok(found, `“${words}” has ${JSON.stringify(choices)}`);
    return found;
  };
}

test("a model of an agent's own is chosen in two lists, and told to it with the next prompt", async () => {
  const agents = join(process.env["CALLBOARD_CONFIG_DIR"] ?? "", "agents");
  await fs.mkdir(agents, { recursive: true });
  const command = JSON.stringify([process.execPath, at("agent.cjs")]);
  await fs.writeFile(join(agents, "outsider.md"), `---\nkind: acp\ncommand: ${command}\n---\n`);
  const { app } = await api();
  const made = await app.change("session/create", { cwd: root, profile: "outsider" });
  const { sessionId } = made.session;
  app.focused = sessionId;
  const say = async (): Promise<void> => {
    await app.change("session/prompt", { sessionId, content: [{ type: "text", text: "go" }] });
    await app.request("session/wait", { sessionId, until: "idle" });
  };
  const set = (): string | undefined => app.sessions.byId.get(sessionId)?.options?.[0]?.value;
  await say();
  await until("what it told is known", () => set() === "s");
  const [models, values] = await answering([pick("Model of outsider"), pick("Large")], () =>
    vscode.commands.executeCommand("callboard.selectModel"),
  );
  assert.deepEqual([models?.words, values?.words], ["Model", "Model of outsider"]);
  assert.deepEqual(
    (values?.choices as vscode.QuickPickItem[]).map(({ label }) => label),
    ["$(check) Small", "Large"],
  );
  await until("it is set", () => set() === "l");
  await say();
  const page = await app.request("event/list", {
    scope: { kind: "session", id: sessionId },
    types: ["external_options"],
  });
  const told = page.data.map(({ data }) => (data as { options: { value: string }[] }).options);
  assert.deepEqual(told.at(-1)?.[0]?.value, "l");
});
