/** What was said before, gone through with the arrows; what was being written comes back at the end. */
export class History {
  private at: number | undefined;
  private draft = "";

  constructor(private readonly entries: () => readonly string[]) {}

  /** The one before; nothing at the oldest. */
  back(current: string): string | undefined {
    const entries = this.entries();
    const at = (this.at ?? entries.length) - 1;
    const found = entries[at];
    if (found === undefined) {
      return undefined;
    }
    if (this.at === undefined) {
      this.draft = current;
    }
    this.at = at;
    return found;
  }

  /** The one after; nothing where there is nothing newer. */
  forward(): string | undefined {
    if (this.at === undefined) {
      return undefined;
    }
    this.at += 1;
    const found = this.entries()[this.at];
    if (found === undefined) {
      this.at = undefined;
      return this.draft;
    }
    return found;
  }

  /** Something was written: what is shown is none of them any more. */
  leave(): void {
    this.at = undefined;
  }
}
