// Waiting for what other processes do.

/** Longer than anything here takes on a machine that is busy with other things. */
export const PATIENCE_MS = 30_000;

/** Resolves when it holds, and fails when it does not in time. */
export async function until(holds: () => boolean, what = holds.toString()): Promise<void> {
  const ends = performance.now() + PATIENCE_MS;
  while (!holds()) {
    if (performance.now() > ends) {
      throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Whether a process is there; one that has ended and was not asked for yet is not. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
