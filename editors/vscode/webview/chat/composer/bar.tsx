/** Below what is written: with what the agent works, and what becomes of the text. */
import type { Delivery } from "@callboard/protocol";
import type { JSX } from "preact";

import { bothOf, type HeadCard } from "../../../src/shared/chat.js";
import { Icon, IconButton } from "../../shared/icon.js";
import { usePage } from "../page.js";
import { Stop } from "./stop.js";

const MODES: Record<string, string> = { ask: "comment", plan: "checklist", work: "tools" };

function Picker(props: {
  icon: string;
  words: string;
  title: string;
  class: string;
  press: () => void;
}): JSX.Element {
  return (
    <button
      type="button"
      class={`picker ${props.class}`}
      title={props.title}
      aria-label={props.title}
      onClick={props.press}
    >
      <Icon name={props.icon} />
      <span class="clipped">
        <bdi>{props.words}</bdi>
      </span>
    </button>
  );
}

export function Bar(props: {
  head: HeadCard | undefined;
  empty: boolean;
  /** Why nothing can be sent now. */
  barred: string | undefined;
  stopMenu: number;
  send: (delivery: Delivery) => void;
}): JSX.Element {
  const page = usePage();
  const { head } = props;
  const { look } = page.state;
  const running = head?.turn !== undefined;
  const mod = /mac/i.test(navigator.userAgent) ? "Cmd" : "Ctrl";
  const plain = look.sendKey === "enter";
  const mode = bothOf(head?.mode, head?.agentMode);
  const model = bothOf(head?.model?.split("/").at(-1), head?.agentModel);
  const send = running
    ? `Queue: it is read when the turn ends (${plain ? "Enter" : `${mod}+Enter`})`
    : `Send (${plain ? "Enter" : `${mod}+Enter`})`;
  const steer = `Steer: it is told at the next step (${mod}${plain ? "" : "+Shift"}+Enter)`;
  return (
    <div class="bar">
      <IconButton
        icon="add"
        label="Add a file"
        onPress={() => {
          page.run("callboard.addFile");
        }}
      />
      {head?.mode !== undefined && (
        <Picker
          icon={MODES[head.mode] ?? "settings"}
          words={mode}
          title={`Mode: ${mode}. Choose another one`}
          class="mode"
          press={() => {
            page.run("callboard.selectMode");
          }}
        />
      )}
      {model !== "" && (
        <Picker
          icon="sparkle"
          words={model}
          title={`Model: ${bothOf(head?.model, head?.agentModel)}. Choose another one`}
          class="model"
          press={() => {
            page.run("callboard.selectModel");
          }}
        />
      )}
      <span class="grow" />
      {look.showUsage && head?.usage !== undefined && head.usage !== "" && (
        <button
          type="button"
          class="link usage"
          title={`Used: ${head.usage}. Show more`}
          onClick={() => {
            page.run("callboard.showUsage");
          }}
        >
          {head.usage}
        </button>
      )}
      {head && <Stop head={head} opened={props.stopMenu} />}
      {running && !props.empty && (
        <IconButton
          icon="debug-step-into"
          label={steer}
          class="steer"
          disabled={props.barred !== undefined}
          onPress={() => {
            props.send("steer");
          }}
        />
      )}
      {(!running || !props.empty) && (
        <IconButton
          icon={running ? "history" : "send"}
          label={props.barred ?? send}
          class="send"
          disabled={props.empty || props.barred !== undefined}
          onPress={() => {
            props.send(running ? "queue" : "auto");
          }}
        />
      )}
    </div>
  );
}
