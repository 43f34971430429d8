/** What is said to a server. */
import { AbstractMessageWriter, type Message, type MessageWriter } from "vscode-jsonrpc/node";
import { explain } from "./errors";

/** Writes at once; a pipe that is broken is told by the end of the process. */
export class Writer extends AbstractMessageWriter implements MessageWriter {
  /** Why the message that was written last was none. */
  fault: string | undefined;

  constructor(private readonly send: (message: Message, body: string) => void) {
    super();
  }

  write(message: Message): Promise<void> {
    this.fault = undefined;
    try {
      this.send(message, JSON.stringify(message));
    } catch (fault) {
      // Told by `fault`, since the library would throw it where nobody catches it.
      this.fault = explain(fault);
    }
    return Promise.resolve();
  }

  end(): void {
    this.dispose();
  }
}
