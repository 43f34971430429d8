/** A request as the one who asks sees it: a promise. */
import type { Requests as Methods } from "@callboard/protocol";
import { answer } from "./answers";
import type { RequestOptions } from "./environment";
import { CallError } from "./errors";
import type { Pending, Requests } from "./requests";

/**
 * Makes a request, and has it asked.
 * @param ask of whichever server
 * @throws CallError
 */
export function asking<M extends keyof Methods>(
  method: M,
  params: Methods[M]["params"],
  { once, patient, signal }: RequestOptions,
  requests: Requests,
  ask: (pending: Pending) => void,
): Promise<Methods[M]["result"]> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      requests.drop(pending);
      reject(new CallError(-32800, `${method} was given up`, { kind: "requestCancelled" }));
    };
    const pending: Pending = {
      method,
      params,
      once: once === true,
      patient: patient === true,
      dropped: false,
      answered: (fault, result) => {
        signal?.removeEventListener("abort", giveUp);
        const told = fault ? undefined : answer(method, params, result);
        if (fault) {
          reject(fault);
        } else if (!told) {
          const words = `the server gave no answer to ${method} that can be read`;
          reject(new CallError(0, words, { kind: "unreadable" }));
        } else {
          resolve(told);
        }
      },
    };
    if (signal?.aborted === true) {
      giveUp();
      return;
    }
    signal?.addEventListener("abort", giveUp, { once: true });
    ask(pending);
  });
}
