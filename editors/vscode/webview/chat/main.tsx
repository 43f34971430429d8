/** The page of a chat. */
import { render } from "preact";

import type { FromChat, ToChat } from "../../src/shared/chat.js";
import { connect } from "../shared/host.js";
import { makeRegions } from "../shared/live.js";
import { App } from "./app.js";
import { leaveChords } from "./chord.js";
import { Page } from "./page.js";
import "./style.css";

// The extension says things only after it was told that the page is there.
const host = connect<ToChat, FromChat>((message) => {
  page.hear(message);
});
const page = new Page(host);

makeRegions();
leaveChords();

const root =
  document.getElementById("root") ?? document.body.appendChild(document.createElement("div"));
root.id = "root";
root.replaceChildren(); // the skeleton that stood here until now
render(<App page={page} />, root);

page.onDraw(() => {
  const size = page.state.look.fontSize;
  document.documentElement.style.setProperty("--cb-font-size", size > 0 ? `${size}px` : null);
});

for (const focused of [true, false]) {
  window.addEventListener(focused ? "focus" : "blur", () => {
    page.post({ type: "focused", focused });
  });
}

page.post({ type: "ready" });
