/** What the server asks this window: to answer approvals, and what its buffers hold. */
import type {
  ApprovalRequestParams,
  ApprovalRequestResult,
  ReadFileParams,
  ReadFileResult,
} from "@callboard/protocol";
import type { App } from "./app";
import { asked } from "./catalog";
import type { CancelToken } from "./server/connection";
import { CallError } from "./server/errors";

/** Reads a file as the editor has it, with changes that are not saved yet. Throws `CallError`. */
export type BufferReader = (params: ReadFileParams) => Promise<ReadFileResult>;

export class Questions {
  readonly #open = new Map<string, (result: ApprovalRequestResult) => void>();

  constructor(
    private readonly app: App,
    private readonly read: BufferReader,
  ) {}

  /** @throws CallError */
  asked(method: string, params: object, token: CancelToken): Promise<object> {
    if (method === "approval/request") {
      return this.#approval(params as ApprovalRequestParams, token);
    }
    if (method === "client/readFile") {
      return this.read(params as ReadFileParams);
    }
    return Promise.reject(new CallError(-32601, `the client has no method ${method}`));
  }

  /**
   * Held open while the person thinks: so the server knows that somebody is there. The answer itself goes
   * by `approval/answer`, which tells who was first.
   */
  #approval({ approval }: ApprovalRequestParams, token: CancelToken): Promise<object> {
    return new Promise((resolve) => {
      this.#open.set(approval.approvalId, resolve);
      token.onCancelled(() => {
        this.withdraw(approval.approvalId);
      });
      asked(this.app, approval);
    });
  }

  /** Leaves an approval to others, or to `approval/answer`. */
  withdraw(approvalId: string): void {
    const resolve = this.#open.get(approvalId);
    if (resolve) {
      this.#open.delete(approvalId);
      resolve({ defer: true });
    }
  }

  /** Who asked is gone. */
  forget(): void {
    this.#open.clear();
  }
}
