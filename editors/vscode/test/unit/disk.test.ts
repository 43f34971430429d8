import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { decode, encode, inside, onDisk, write } from "../../src/disk";
import { contentOf } from "../../src/model/patch";

let folder: string;
before(async () => {
  folder = await fs.realpath(await fs.mkdtemp(join(tmpdir(), "callboard-")));
});
after(async () => {
  await fs.rm(folder, { recursive: true });
});

function told(data: Buffer): [string, string, boolean] | string {
  const found = decode(data);
  if ("fault" in found) {
    return found.fault;
  }
  assert.ok(found.text);
  return [contentOf(found.text), found.form.encoding, found.form.marked];
}

describe("the bytes of a file", () => {
  const cases: [string, Buffer, [string, string, boolean] | string][] = [
    ["UTF-8", Buffer.from("ä\r\nb"), ["ä\r\nb", "utf-8", false]],
    ["UTF-8 with a mark", Buffer.from("\ufeffä\n"), ["ä\n", "utf-8", true]],
    ["UTF-16", Buffer.from("\ufeffä\n", "utf16le"), ["ä\n", "utf-16le", true]],
    [
      "UTF-16, the other way round",
      Buffer.from("\ufeffä\n", "utf16le").swap16(),
      ["ä\n", "utf-16be", true],
    ],
    ["Latin-1", Buffer.from([0x61, 0xe4, 0x0a]), ["aä\n", "latin1", false]],
    ["a byte 0", Buffer.from("a\0b"), "it is not text"],
    ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]), "it is spelled in UTF-32"],
    ["nothing", Buffer.from(""), ["", "utf-8", false]],
  ];
  for (const [name, data, expected] of cases) {
    it(`are read as ${name}, and come out the same`, () => {
      assert.deepEqual(told(data), expected);
      const found = decode(data);
      if (!("fault" in found) && found.text) {
        assert.deepEqual(encode(contentOf(found.text), found.form), data);
      }
    });
  }

  it("are none where the encoding lacks a character", async () => {
    assert.equal(encode("🙂", { encoding: "latin1", marked: false }), undefined);
    const file = join(folder, "latin");
    await fs.writeFile(file, "a");
    const why = await write(file, ["🙂"], { encoding: "latin1", marked: false });
    assert.equal(why, "it cannot be spelled in latin1");
    assert.equal(await fs.readFile(file, "utf8"), "a");
  });

  it("are not read of what is no file, or too large", async () => {
    assert.deepEqual(await onDisk(folder), { fault: "it is no file but a folder" });
    const large = join(folder, "large");
    await fs.writeFile(large, "");
    await fs.truncate(large, 17 * 1024 * 1024);
    assert.deepEqual(await onDisk(large), { fault: "it has more than 16 MiB" });
    assert.deepEqual(await onDisk(join(folder, "none")), { text: undefined, form: undefined });
  });
});

describe("writing a file", () => {
  it("keeps its mode, makes its folders, and leaves nothing beside it", async () => {
    const file = join(folder, "a", "b", "run.sh");
    assert.equal(await write(file, ["one\n"]), undefined);
    await fs.chmod(file, 0o755);
    assert.equal(await write(file, ["two\n"]), undefined);
    assert.equal(await fs.readFile(file, "utf8"), "two\n");
    assert.equal((await fs.stat(file)).mode & 0o777, 0o755);
    assert.deepEqual(await fs.readdir(join(folder, "a", "b")), ["run.sh"]);
  });

  it("says what the system refuses", async () => {
    const file = join(folder, "plain");
    await fs.writeFile(file, "");
    assert.equal(await write(join(file, "below"), ["x"]), "something else is in its place");
  });
});

describe("a path", () => {
  it("is inside of a folder only where all its links lead there", async () => {
    const root = join(folder, "root");
    const out = join(folder, "out");
    await fs.mkdir(join(root, "sub"), { recursive: true });
    await fs.mkdir(out);
    await fs.writeFile(join(out, "secret"), "");
    await fs.symlink(out, join(root, "link"));
    await fs.symlink(join(out, "secret"), join(root, "file"));
    await fs.symlink(join(out, "none"), join(root, "dangling"));
    await fs.symlink(join(root, "sub"), join(out, "back"));
    const at = (...parts: string[]): Promise<string | undefined> => inside(parts.join("/"), [root]);
    assert.equal(await at(root, "new", "file"), join(root, "new", "file"));
    assert.equal(await at(out, "back", "file"), join(root, "sub", "file"));
    assert.equal(await at(root, "..odd"), join(root, "..odd"));
    for (const bad of [
      at(root, "link", "new"),
      at(root, "file"),
      at(root, "dangling"),
      at(root, "..", "out", "x"),
      at(root, "sub", "..", "x"),
      at(root),
      at("relative"),
      at(root, "a\0b"),
      at(`${root}-other`, "x"),
    ]) {
      assert.equal(await bad, undefined);
    }
  });
});
