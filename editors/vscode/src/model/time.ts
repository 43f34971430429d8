/** Times of the wire. */

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** A time as the wire tells it (RFC 3339, UTC), in ms since the epoch; absent for what is no time. */
export function ms(at: unknown): number | undefined {
  if (typeof at !== "string" || !RFC3339.test(at)) {
    return undefined;
  }
  const time = Date.parse(at);
  return Number.isNaN(time) ? undefined : time;
}
