/** Times, as a person reads them. */

/** As 850 ms, 12 s, 3 m 20 s or 2 h 5 m. */
export function duration(ms: number): string {
  if (ms < 1000) {
    return `${Math.max(0, Math.floor(ms))} ms`;
  }
  const s = Math.floor(ms / 1000 + 0.5);
  if (s < 60) {
    return `${s} s`;
  }
  if (s < 3600) {
    return `${Math.floor(s / 60)} m ${s % 60} s`;
  }
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} m`;
}

/** How long ago, in whole seconds: it changes once a second at most. */
export function elapsed(since: string | undefined, now: number): string {
  const at = since ? Date.parse(since) : Number.NaN;
  if (Number.isNaN(at)) {
    return "";
  }
  const seconds = Math.max(0, Math.floor((now - at) / 1000));
  return seconds === 0 ? "0 s" : duration(seconds * 1000);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The time of day, with the day where it is another one than today. */
export function shortTime(at: string | undefined, now: number = Date.now()): string {
  const ms = at ? Date.parse(at) : Number.NaN;
  if (Number.isNaN(ms)) {
    return "";
  }
  const date = new Date(ms);
  const today = new Date(now).toDateString() === date.toDateString();
  return today ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

export function fullTime(at: string | undefined): string {
  const ms = at ? Date.parse(at) : Number.NaN;
  return Number.isNaN(ms) ? "" : full.format(new Date(ms));
}
