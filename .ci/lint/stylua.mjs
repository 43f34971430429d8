// Formats Lua files with the stylua of .tools/lint; its npm package is a library without a command.
//   node stylua.mjs check|write CONFIG-AS-JSON FILE...
// Names each file that is not formatted, and exits with 1 when there is one that `check` found.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [verb, settings, ...files] = process.argv.slice(2);
const tools = new URL("../../.tools/lint/", import.meta.url);
const stylua = createRequire(tools)("@johnnymorganz/stylua");

const enums = {
  syntax: stylua.LuaVersion,
  line_endings: stylua.LineEndings,
  indent_type: stylua.IndentType,
  quote_style: stylua.QuoteStyle,
  call_parentheses: stylua.CallParenType,
  collapse_simple_statement: stylua.CollapseSimpleStatement,
  space_after_function_names: stylua.SpaceAfterFunctionNames,
  block_newline_gaps: stylua.BlockNewlineGaps,
};

function configured() {
  const config = stylua.Config.new();
  for (const [key, value] of Object.entries(JSON.parse(settings))) {
    const meant = enums[key] ? enums[key][value] : value;
    if (!(key in config) || meant === undefined) {
      throw new Error(`stylua.toml: ${key} = ${JSON.stringify(value)} is nothing that stylua knows`);
    }
    config[key] = meant;
  }
  return config;
}

// Now and then it has more to say about its own output.
function formatted(text) {
  for (let pass = 0; pass < 4; pass += 1) {
    const next = stylua.formatCode(text, configured(), undefined, stylua.OutputVerification.Full);
    if (next === text) break;
    text = next;
  }
  return text;
}

function faultOf(file) {
  const text = readFileSync(file, "utf8");
  const wanted = formatted(text);
  if (wanted === text) return undefined;
  if (verb === "check") return `Would reformat ${file}`;
  writeFileSync(file, wanted);
  console.log(`Formatted ${file}`);
  return undefined;
}

try {
  configured();
} catch (fault) {
  console.log(fault.message);
  process.exit(1);
}
for (const file of files) {
  try {
    const fault = faultOf(file);
    if (fault) {
      console.log(fault);
      process.exitCode = 1;
    }
  } catch (fault) {
    console.log(`${file}: ${fault.message ?? fault}`);
    process.exitCode = 1;
  }
}
