/**
 * What suites for the real extension host are written with. A suite is a file of `suite`, with a `.yaml`
 * of its name beside it where it wants settings, a scenario or files; `tests/editors/vscode` runs it.
 *
 *     import { test } from "../runner";
 *     export { run } from "../runner";
 *
 *     test("the command is there", async () => { ... });
 */

export interface Result {
  name: string;
  ms: number;
  /** What went wrong, for a person. */
  error?: string;
}

export interface Outcome {
  tests: Result[];
  /** The suite could not be run at all. */
  fault?: string;
}

type Body = () => Promise<void> | void;

const PATIENCE_MS = 20_000;

const registered: { name: string; body: Body }[] = [];

/** A test; they run one after another, in this order, in one window. */
export function test(name: string, body: Body): void {
  registered.push({ name, body });
}

/** Waits until `check` returns something other than undefined and false, and returns it. */
export async function until<T>(
  what: string,
  check: () => T | undefined | false | PromiseLike<T | undefined | false>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const ends = performance.now() + patienceMs; // a test may set the clock
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > ends) throw new Error(`not in ${patienceMs / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * Runs what is registered; a test that fails does not keep the others from running. `ran` is told after
 * each of them.
 */
export async function run(ran: (so: Result[]) => void): Promise<Outcome> {
  const tests: Result[] = [];
  for (const { name, body } of registered) {
    const began = Date.now();
    const error = await attempt(body);
    tests.push({ name, ms: Date.now() - began, ...(error === undefined ? {} : { error }) });
    ran(tests);
  }
  return { tests };
}

async function attempt(body: Body): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  try {
    await Promise.race([
      body(),
      new Promise((_, reject) => {
        timer = setTimeout(() => {
          reject(new Error(`the test does not end in ${(2 * PATIENCE_MS) / 1000} s`));
        }, 2 * PATIENCE_MS);
      }),
    ]);
    return undefined;
  } catch (fault) {
    return fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
  } finally {
    clearTimeout(timer);
  }
}
