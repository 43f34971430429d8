/** Frames as LSP has them: a Content-Length header, a blank line, and so many bytes. */

/** A header block larger than this (bytes) is no header. */
export const HEADER_LIMIT = 8192;

/**
 * Whoever announces more than this (bytes) is no server of ours: they send pages of a megabyte or so, and a
 * frame that is read at once keeps all extensions for as long as it takes to read it.
 */
export const BODY_LIMIT = 64 * 1024 * 1024;

/** So much (bytes) of what is no frame is told. */
const SHOWN = 200;

const LF = 10;
const CR = 13;

const COULD_BEGIN = /^(?:[\w-]+[ \t]*:|[\w-]*[ \t]*\r?\n?$)/;
const LENGTH = /^content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r?$/im;

export function frame(body: string): Buffer {
  return Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

export interface Fed {
  /** Bodies that are whole by now. */
  bodies: Buffer[];
  /** The beginning of what is no frame; the stream is of no use after it. */
  fault: string | undefined;
}

/** Takes bytes as they come and gives whole bodies. */
export class FrameReader {
  /** What is looked at; `#at` is where in it the next frame, or the rest of one, begins. */
  #buffer: Buffer = Buffer.alloc(0);
  #at = 0;
  /** What came after it. */
  #parts: Buffer[] = [];
  /** Bytes that were not given yet. */
  #size = 0;
  /** Bytes of the body that is due; undefined while a header is. */
  #wanted: number | undefined;
  #fault: string | undefined;

  /** Half a frame is there. */
  get partial(): boolean {
    return this.#size > 0 || this.#wanted !== undefined;
  }

  feed(chunk: Buffer): Fed {
    const bodies: Buffer[] = [];
    if (this.#fault !== undefined) {
      return { bodies, fault: this.#fault };
    }
    if (chunk.length > 0) {
      this.#parts.push(chunk);
      this.#size += chunk.length;
    }
    for (;;) {
      if (this.#wanted === undefined) {
        if (this.#size === 0 || !this.#header()) {
          break;
        }
      }
      const wanted = this.#wanted;
      if (wanted === undefined || this.#size < wanted) {
        break;
      }
      this.#join();
      bodies.push(this.#buffer.subarray(this.#at, this.#at + wanted));
      this.#advance(wanted);
      this.#wanted = undefined;
    }
    if (this.#size === 0) {
      this.#buffer = Buffer.alloc(0);
      this.#at = 0;
    }
    return { bodies, fault: this.#fault };
  }

  /** All that is there, as one. */
  #join(): void {
    if (this.#parts.length > 0) {
      this.#buffer = Buffer.concat([this.#buffer.subarray(this.#at), ...this.#parts]);
      this.#at = 0;
      this.#parts = [];
    }
  }

  #advance(bytes: number): void {
    this.#size -= bytes;
    this.#at += bytes;
  }

  #text(end: number): string {
    return this.#buffer.toString("utf8", this.#at, end);
  }

  #refuse(shown: string): false {
    this.#fault = shown.slice(0, SHOWN);
    return false;
  }

  /** @returns whether a header was found */
  #header(): boolean {
    this.#join();
    const end = blankLine(this.#buffer, this.#at);
    // What cannot become a header any more is told at once, not after the limit.
    const newline = this.#buffer.indexOf(LF, this.#at);
    const first = this.#text(
      newline < 0 ? Math.min(this.#buffer.length, this.#at + SHOWN) : newline + 1,
    );
    if (!COULD_BEGIN.test(first)) {
      return this.#refuse(this.#text(this.#at + SHOWN));
    }
    if (end === undefined) {
      return this.#size > HEADER_LIMIT ? this.#refuse(this.#text(this.#at + SHOWN)) : false;
    }
    const head = this.#text(end.from);
    const length = Number(LENGTH.exec(head)?.[1] ?? NaN);
    if (Number.isNaN(length) || length > BODY_LIMIT) {
      return this.#refuse(head);
    }
    this.#wanted = length;
    this.#advance(end.to - this.#at);
    return true;
  }
}

/** Where the header ends, and where what follows it begins. */
function blankLine(buffer: Buffer, at: number): { from: number; to: number } | undefined {
  for (let lf = buffer.indexOf(LF, at); lf >= 0; lf = buffer.indexOf(LF, lf + 1)) {
    const next = buffer[lf + 1] === CR ? lf + 2 : lf + 1;
    if (buffer[next] === LF) {
      return { from: lf, to: next + 1 };
    }
    if (lf - at > HEADER_LIMIT) {
      return undefined;
    }
  }
  return undefined;
}
