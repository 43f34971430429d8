/** What of `vscode` the page of a webview is made with. */
export const env = { language: "en" };

export const Uri = {
  joinPath: (root: string, ...parts: string[]): string => [root, ...parts].join("/"),
};
