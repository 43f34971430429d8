import * as vscode from "vscode";
import type { Look } from "../shared/chat";

/** How a person wants chats to be, by their settings. */
export function chatLook(): Look {
  const settings = vscode.workspace.getConfiguration("callboard");
  return {
    sendKey: settings.get<Look["sendKey"]>("chat.sendKey", "enter"),
    fontSize: Math.max(0, Math.min(72, Number(settings.get<number>("chat.fontSize", 0)) || 0)),
    showUsage: settings.get<boolean>("usage.show", true),
  };
}
