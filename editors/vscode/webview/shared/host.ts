/** The other side of the page: the extension. A page gets hold of it once. */
interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): VsCodeApi;

export interface Host<Out> {
  post(message: Out): void;
  /** What was kept last, by this page or by the one that stood here before it. */
  kept(): unknown;
  keep(state: unknown): void;
}

/** Connects the page; what the extension says goes to `hear`. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- both languages are named at once
export function connect<In, Out>(hear: (message: In) => void): Host<Out> {
  const api = acquireVsCodeApi();
  window.addEventListener("message", (event: MessageEvent<unknown>) => {
    const data = event.data;
    if (typeof data === "object" && data !== null && "type" in data) {
      hear(data as In);
    }
  });
  return {
    post: (message) => {
      api.postMessage(message);
    },
    kept: () => api.getState(),
    keep: (state) => {
      api.setState(state);
    },
  };
}
