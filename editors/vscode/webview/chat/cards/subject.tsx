/** What an approval is about. Nothing of a command is left out: it is what the answer is given to. */
import type { JSX } from "preact";

import type { ApprovalCard } from "../../../src/shared/chat.js";
import { usePage } from "../page.js";
import { File } from "./parts.js";
import { Changes } from "./tool.js";

export function Subject({ approval }: { approval: ApprovalCard }): JSX.Element {
  const page = usePage();
  const about = approval.subject;
  switch (about.type) {
    case "command":
      return (
        <>
          <pre class="command" dir="ltr">
            <span class="dim unselectable" aria-hidden="true">
              ${" "}
            </span>
            {about.command}
          </pre>
          <p class="cwd">
            <span class="dim">in </span>
            <bdi dir="ltr">{about.cwd}</bdi>
          </p>
        </>
      );
    case "fileChange":
      return (
        <>
          <Changes
            changes={about.changes}
            open
            show={() => {
              page.post({ type: "openApprovalDiff", approvalId: approval.approvalId });
            }}
          />
          <button
            type="button"
            class="link"
            onClick={() => {
              page.post({ type: "openApprovalDiff", approvalId: approval.approvalId });
            }}
          >
            Show all as a diff
          </button>
        </>
      );
    case "form":
      return (
        <>
          <p class="plain" dir="auto">
            {about.message}
          </p>
          {about.fields.length > 0 && (
            <dl class="fields">
              {about.fields.map((field) => (
                <div key={field.name}>
                  <dt>
                    <bdi>{field.name}</bdi>
                  </dt>
                  <dd class="dim" dir="auto">
                    {field.about}
                  </dd>
                </div>
              ))}
            </dl>
          )}
        </>
      );
    default:
      return (
        <>
          <p>
            <bdi dir="ltr" class="mono">
              {about.name}
            </bdi>
          </p>
          {about.json !== "" && (
            <pre class="command" dir="ltr">
              {about.json}
            </pre>
          )}
          {about.files.length > 0 && (
            <p class="files">
              <span class="dim">at </span>
              {about.files.map((file, index) => (
                <File key={index} file={file} />
              ))}
            </p>
          )}
        </>
      );
  }
}
