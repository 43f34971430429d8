/** The keys of a few words that are written in place: Enter is done with them, Shift+Enter begins a line, Escape leaves. */
export function noteKeys(done: () => void, leave: () => void): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.isComposing) {
      return;
    }
    if (event.key === "Escape") {
      leave();
    } else if (event.key === "Enter" && !event.shiftKey) {
      done();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
}
