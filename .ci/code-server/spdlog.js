// What VS Code asks of @vscode/spdlog, in plain JavaScript: no compiler is at hand where tests are installed,
// and without it no output channel shows a line. The channel's text is the file that is written here.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const NAMES = ["trace", "debug", "info", "warning", "error", "critical", "off"];

class Logger {
  constructor(_type, _name, file) {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    this.file = fs.openSync(file, "a");
    this.level = 2;
    this.plain = false;
  }

  write(level, message) {
    if (level < this.level || this.file === undefined) return;
    const at = new Date().toISOString().replace("T", " ").replace("Z", "");
    fs.writeSync(this.file, this.plain ? message : `${at} [${NAMES[level]}] ${message}\n`);
  }

  trace(message) {
    this.write(0, message);
  }
  debug(message) {
    this.write(1, message);
  }
  info(message) {
    this.write(2, message);
  }
  warn(message) {
    this.write(3, message);
  }
  error(message) {
    this.write(4, message);
  }
  critical(message) {
    this.write(5, message);
  }
  getLevel() {
    return this.level;
  }
  setLevel(level) {
    this.level = level;
  }
  setPattern() {
    this.plain = false;
  }
  clearFormatters() {
    this.plain = true;
  }
  flush() {}
  drop() {
    if (this.file !== undefined) fs.closeSync(this.file);
    this.file = undefined;
  }
}

exports.version = 0;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.Logger = Logger;
exports.createRotatingLogger = async (name, file) => new Logger("rotating", name, file);
exports.createAsyncRotatingLogger = async (name, file) => new Logger("rotating_async", name, file);
