import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** Where the bundles of the pages are. */
export function webviewRoot(context: vscode.ExtensionContext): vscode.Uri {
  return vscode.Uri.joinPath(context.extensionUri, "dist", "webview");
}

/** The icon of a tab. Unlike one of the activity bar it does not take the theme's colour by itself. */
export function tabIcon(context: vscode.ExtensionContext): { light: vscode.Uri; dark: vscode.Uri } {
  const of = (name: string): vscode.Uri =>
    vscode.Uri.joinPath(context.extensionUri, "media", `tab-${name}.svg`);
  return { light: of("light"), dark: of("dark") };
}

export function webviewOptions(context: vscode.ExtensionContext): vscode.WebviewOptions {
  return { enableScripts: true, enableForms: false, localResourceRoots: [webviewRoot(context)] };
}

/**
 * The page of a webview. Nothing is inline and nothing comes from elsewhere; what it shows until its script
 * has come up stands in it already, so that it is never blank.
 */
export function pageOf(
  context: vscode.ExtensionContext,
  webview: vscode.Webview,
  page: { name: "chat" | "board"; title: string; state?: Record<string, string> },
): string {
  const root = webviewRoot(context);
  const uri = (file: string): string =>
    webview.asWebviewUri(vscode.Uri.joinPath(root, file)).toString();
  const nonce = randomBytes(16).toString("base64url");
  const source = webview.cspSource;
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${source}`,
    `font-src ${source}`,
    `img-src ${source}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const state = Object.entries(page.state ?? {})
    .map(([name, value]) => ` data-${name}="${escaped(value)}"`)
    .join("");
  return `<!DOCTYPE html>
<html lang="${escaped(vscode.env.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(page.title)}</title>
<link rel="stylesheet" href="${escaped(uri("codicon.css"))}">
<link rel="stylesheet" href="${escaped(uri(`${page.name}.css`))}">
</head>
<body class="callboard-${page.name}"${state}>
<div id="root"><main class="skeleton" aria-busy="true"><h1>${escaped(page.title)}</h1><p>Loading…</p></main></div>
<script nonce="${nonce}" src="${escaped(uri(`${page.name}.js`))}"></script>
</body>
</html>`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}
