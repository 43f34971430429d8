/** What may stand for something else in a setting; nothing else that it holds means anything. */

export interface Variables {
  folders: readonly string[];
  home: string;
  env: Readonly<Record<string, string | undefined>>;
}

export type Expanded = { text: string } | { fault: string };

const VARIABLE = /\$\{([^}]*)\}/g;

function value(name: string, { folders, home, env }: Variables): Expanded {
  if (name === "workspaceFolder") {
    const [folder] = folders;
    return folder === undefined ? { fault: "no folder is open" } : { text: folder };
  } else if (name.startsWith("workspaceFolder:")) {
    const wanted = name.slice("workspaceFolder:".length);
    const folder = folders.find((each) => each.split(/[/\\]/).at(-1) === wanted);
    return folder === undefined ? { fault: `no folder ${wanted} is open` } : { text: folder };
  } else if (name === "userHome") {
    return { text: home };
  } else if (name.startsWith("env:")) {
    return { text: env[name.slice("env:".length)] ?? "" };
  }
  return { fault: `nothing is known of \${${name}}` };
}

/** `~` at the beginning, `${workspaceFolder}`, `${workspaceFolder:name}`, `${userHome}` and `${env:NAME}`. */
export function expanded(text: string, variables: Variables): Expanded {
  let fault: string | undefined;
  const from = /^~(?=$|[/\\])/.test(text) ? variables.home + text.slice(1) : text;
  const out = from.replace(VARIABLE, (_all, name: string) => {
    const got = value(name, variables);
    if ("fault" in got) {
      fault ??= got.fault;
      return "";
    }
    return got.text;
  });
  return fault === undefined ? { text: out } : { fault };
}
