// A log that a test can read.
import type { Log } from "../../src/log";

export class Lines implements Log {
  /** Each with its level before it. */
  readonly lines: string[] = [];

  #add(level: string): (text: string) => void {
    return (text) => {
      this.lines.push(`${level} ${text}`);
    };
  }

  readonly trace = this.#add("trace");
  readonly debug = this.#add("debug");
  readonly info = this.#add("info");
  readonly warn = this.#add("warn");
  readonly error = this.#add("error");

  of(level: string): string[] {
    return this.lines.filter((line) => line.startsWith(`${level} `));
  }
}
