// Frames: however the bytes come, whole bodies are given; what is no frame is told.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BODY_LIMIT, frame, FrameReader } from "../../src/server/framing";

interface All {
  bodies: string[];
  fault: string | undefined;
}

function fed(...chunks: (Buffer | string)[]): All {
  const reader = new FrameReader();
  const all: All = { bodies: [], fault: undefined };
  for (const chunk of chunks) {
    const { bodies, fault } = reader.feed(Buffer.from(chunk));
    all.bodies.push(...bodies.map((body) => body.toString("latin1")));
    all.fault = fault;
  }
  return all;
}

const BODIES = ["{}", "", "ü".repeat(100), "a\r\n\r\nContent-Length: 5\r\n\r\nb", "\0\x01\x7f"];
const READ = BODIES.map((body) => Buffer.from(body).toString("latin1"));
const stream = Buffer.concat(BODIES.map(frame));

describe("frames", () => {
  it("say how many bytes follow", () => {
    assert.equal(frame("üü").toString(), "Content-Length: 4\r\n\r\nüü");
    assert.equal(frame("").toString(), "Content-Length: 0\r\n\r\n");
  });

  it("are read when they come at once", () => {
    assert.deepEqual(fed(stream), { bodies: READ, fault: undefined });
  });

  it("are read when they are split in two, anywhere", () => {
    for (let cut = 0; cut <= stream.length; cut++) {
      const got = fed(stream.subarray(0, cut), stream.subarray(cut));
      assert.deepEqual(got, { bodies: READ, fault: undefined }, `cut after ${cut}`);
    }
  });

  it("are read byte by byte", () => {
    const bytes = [...stream].map((byte) => Buffer.of(byte));
    assert.deepEqual(fed(...bytes), { bodies: READ, fault: undefined });
  });

  it("are given as soon as they are whole, and once", () => {
    const reader = new FrameReader();
    const feed = (text: string): string[] =>
      reader.feed(Buffer.from(text)).bodies.map((body) => body.toString());
    assert.deepEqual(feed("Content-Length: 3\r\n\r\nab"), []);
    assert.deepEqual(feed("cContent-Le"), ["abc"]);
    assert.deepEqual(feed(""), []);
    assert.deepEqual(feed("ngth: 1\r\n\r\nd"), ["d"]);
  });

  it("are given at once where nothing follows the header", () => {
    assert.deepEqual(fed("Content-Length: 0\r\n\r\n").bodies, [""]);
    assert.deepEqual(fed("Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\nx").bodies, ["", "x"]);
  });

  const headers = {
    "in small letters": "content-length: 2\r\n\r\n",
    "in capital letters": "CONTENT-LENGTH: 2\r\n\r\n",
    "with \\n line ends": "Content-Length: 2\n\n",
    "with mixed line ends": "Content-Length: 2\r\n\n",
    "without a space": "Content-Length:2\r\n\r\n",
    "with spaces": "Content-Length :  2  \r\n\r\n",
    "with other headers":
      "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\nX-More: 7\r\n\r\n",
  };
  for (const [name, header] of Object.entries(headers)) {
    it(`may have a header ${name}`, () => {
      assert.deepEqual(fed(`${header}{}${header}[]`), { bodies: ["{}", "[]"], fault: undefined });
    });
  }

  it("of 20 MB are put together once, not with every chunk", () => {
    const size = 20 * 1024 * 1024;
    const bytes = frame("x".repeat(size));
    const reader = new FrameReader();
    let joined = 0;
    const concat = Buffer.concat.bind(Buffer);
    Buffer.concat = (list, length) => {
      const out = concat(list, length);
      joined += out.length;
      return out;
    };
    try {
      let given = 0;
      for (let at = 0; at < bytes.length; at += 65536) {
        for (const body of reader.feed(bytes.subarray(at, at + 65536)).bodies) {
          given += body.length;
        }
      }
      assert.equal(given, size);
      assert.ok(joined >= size && joined <= 2 * size, `${joined} bytes were copied`);
    } finally {
      Buffer.concat = concat;
    }
  });
});

describe("what is no frame", () => {
  const garbage = {
    "a traceback": 'Traceback (most recent call last):\n  File "x.py", line 1\n',
    "a greeting": "Hello, world!\n",
    "JSON without a header": '{"jsonrpc":"2.0"}\n',
    "a bracket and no line end": "[",
    bytes: "\0\x01\x02\x03",
    "a header without a length": "Content-Type: text/plain\r\n\r\n",
    "a length that is none": "Content-Length: many\r\n\r\n",
    "a length that begins as one": "Content-Length: 2x\r\n\r\n",
    "a negative length": "Content-Length: -5\r\n\r\n",
    "a length beyond what is taken": `Content-Length: ${BODY_LIMIT + 1}\r\n\r\n`,
    "a length beyond all numbers": `Content-Length: ${"9".repeat(400)}\r\n\r\n`,
  };
  for (const [name, text] of Object.entries(garbage)) {
    it(`is told at once: ${name}`, () => {
      const { bodies, fault } = fed(text);
      assert.deepEqual(bodies, []);
      assert.equal(fault?.slice(0, 5), text.slice(0, 5));
      assert.ok(fault.length <= 200);
    });

    it(`is told after frames: ${name}`, () => {
      const { bodies, fault } = fed(Buffer.concat([frame("{}"), frame("[]"), Buffer.from(text)]));
      assert.deepEqual(bodies, ["{}", "[]"]);
      assert.equal(fault?.slice(0, 5), text.slice(0, 5));
    });
  }

  it("ends the stream: nothing after it is read", () => {
    const reader = new FrameReader();
    const { fault } = reader.feed(Buffer.from("garbage!\n"));
    assert.deepEqual(reader.feed(frame("{}")), { bodies: [], fault });
  });

  it("is told when a header does not end", () => {
    const line = `X-Pad: ${"x".repeat(1000)}\r\n`;
    const { bodies, fault } = fed(...Array.from({ length: 10 }, () => line));
    assert.deepEqual(bodies, []);
    assert.equal(fault?.slice(0, 10), "X-Pad: xxx");
    assert.ok(fault.length <= 200);
  });

  it("is told when a line does not end", () => {
    const { fault } = fed(...Array.from({ length: 10 }, () => "x".repeat(1000)));
    assert.equal(fault?.slice(0, 3), "xxx");
  });

  it("may yet become a header: then it is waited for", () => {
    for (const begun of ["C", "Content-Length", "Content-Length:", "Content-Length: 2\r"]) {
      assert.deepEqual(fed(begun), { bodies: [], fault: undefined }, begun);
    }
  });
});
