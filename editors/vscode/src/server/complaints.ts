/**
 * What a server writes to stderr: all of it goes to the log, and the last lines are kept for whoever has to be
 * helped when it ends.
 */
import type { Log } from "../log";
import { StringDecoder } from "node:string_decoder";
import { masked } from "./secrets";

/** So many lines are kept, and of one line so many characters. */
const LINES = 20;
const WIDTH = 2000;

export class Complaints {
  readonly #decoder = new StringDecoder("utf8");
  readonly #kept: string[] = [];
  /** The end that is no whole line yet. */
  #rest = "";

  constructor(private readonly log: Log) {}

  #keep(line: string): void {
    // A key can stand anywhere in what a program says before it dies.
    const shown = masked(line.slice(0, WIDTH));
    this.log.debug(`server: ${shown}`);
    this.#kept.push(shown);
    if (this.#kept.length > LINES) {
      this.#kept.shift();
    }
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split(/[\r\n]+/);
    this.#rest = parts.pop() ?? "";
    for (const line of parts) {
      if (line !== "") {
        this.#keep(line);
      }
    }
    if (this.#rest.length > WIDTH) {
      this.#keep(this.#rest);
      this.#rest = "";
    }
  }

  add(chunk: Buffer): void {
    this.#take(this.#decoder.write(chunk));
  }

  /** The last lines; nothing more comes. */
  lines(): string[] {
    this.#take(this.#decoder.end());
    if (this.#rest !== "") {
      this.#keep(this.#rest);
      this.#rest = "";
    }
    return [...this.#kept];
  }
}
