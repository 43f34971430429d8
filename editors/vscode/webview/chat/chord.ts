/**
 * A chord of keys that begins in the page is VS Code's, but the page hears its second key, too: without this it
 * would be written into the composer, or stop the turn.
 */
const SINGLE = new Set(["Control", "Alt", "Shift", "Meta"]);
/** For how long (ms) VS Code waits for the second key. */
const PATIENCE = 5000;

export function leaveChords(): void {
  let began = Number.NEGATIVE_INFINITY;
  window.addEventListener(
    "keydown",
    (event) => {
      if (event.isComposing || SINGLE.has(event.key)) {
        return;
      }
      const first =
        event.code === "KeyJ" &&
        event.altKey &&
        (event.ctrlKey || event.metaKey) &&
        !event.shiftKey;
      if (first || event.timeStamp - began < PATIENCE) {
        began = first ? event.timeStamp : Number.NEGATIVE_INFINITY;
        // VS Code, which listens on the page as well, still hears it.
        event.preventDefault();
      }
    },
    { capture: true },
  );
}
