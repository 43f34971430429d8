/** The page of a task board. */
import { render } from "preact";

import type { FromBoard, ToBoard } from "../../src/shared/board.js";
import { connect } from "../shared/host.js";
import { makeRegions } from "../shared/live.js";
import { App } from "./app.js";
import { Page } from "./page.js";
import "./style.css";

// The extension says things only after it was told that the page is there.
const host = connect<ToBoard, FromBoard>((message) => {
  page.hear(message);
});
const page = new Page(host, document.body.dataset["root"] ?? "");

makeRegions();

const root =
  document.getElementById("root") ?? document.body.appendChild(document.createElement("div"));
root.replaceChildren(); // the skeleton that stood here until now
render(<App page={page} />, root);

page.post({ type: "ready" });
