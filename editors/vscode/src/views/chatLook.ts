import { setting } from "../config";
import type { Look } from "../shared/chat";

/** How a person wants chats to be, by their settings. */
export function chatLook(): Look {
  return {
    sendKey: setting("chat.sendKey"),
    fontSize: setting("chat.fontSize"),
    showUsage: setting("usage.show"),
  };
}
