/** The files that can be meant by what is typed after `@`. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { FileLink } from "../../../src/shared/chat.js";
import { Icon } from "../../shared/icon.js";
import { announce } from "../../shared/live.js";
import type { Page } from "../page.js";
import { mentionAt } from "./mention.js";
import type { Mention } from "./mention.js";

export const LIST_ID = "files";
export const optionId = (index: number): string => `file-${index}`;

/** A key more may follow: files are asked for after so long (ms). */
const DELAY = 80;

export interface FilePopup {
  mention: Mention | undefined;
  files: readonly FileLink[];
  at: number;
  /** Looks what is typed where the caret is. */
  look: (text: string, caret: number) => void;
  move: (by: number) => void;
  close: () => void;
}

export function useFiles(page: Page): FilePopup {
  const [mention, setMention] = useState<Mention>();
  const [files, setFiles] = useState<readonly FileLink[]>([]);
  const [at, setAt] = useState(0);
  const query = useRef<string | undefined>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  useEffect(
    () =>
      page.onTold((message) => {
        if (message.type === "files" && message.query === query.current) {
          setFiles(message.files);
          setAt(0);
          announce(
            message.files.length === 0
              ? "No file is called so"
              : `${message.files.length} files, ${message.files[0]?.label ?? ""}`,
          );
        }
      }),
    [page],
  );

  const close = (): void => {
    clearTimeout(timer.current);
    query.current = undefined;
    setMention(undefined);
    setFiles([]);
  };

  return {
    mention,
    files: mention ? files : [],
    at,
    look: (text, caret) => {
      const found = mentionAt(text, caret);
      if (!found) {
        if (query.current !== undefined) {
          close();
        }
        return;
      }
      setMention(found);
      if (found.query !== query.current) {
        query.current = found.query;
        clearTimeout(timer.current);
        timer.current = setTimeout(() => {
          page.post({ type: "findFiles", query: found.query });
        }, DELAY);
      }
    },
    move: (by) => {
      setAt((was) => (files.length === 0 ? 0 : (was + by + files.length) % files.length));
    },
    close,
  };
}

export function Files(props: {
  popup: FilePopup;
  choose: (file: FileLink) => void;
}): JSX.Element | null {
  const { files, at } = props.popup;
  const root = useRef<HTMLUListElement>(null);
  useEffect(() => {
    root.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at, files]);
  if (files.length === 0) {
    return null;
  }
  return (
    <ul class="popup" role="listbox" id={LIST_ID} aria-label="Files" ref={root}>
      {files.map((file, index) => (
        <li
          key={file.path}
          id={optionId(index)}
          role="option"
          aria-selected={index === at}
          title={file.label}
          onPointerDown={(event) => {
            event.preventDefault(); // the composer keeps the focus
            props.choose(file);
          }}
        >
          <Icon name="file" />
          <bdi dir="ltr">{file.label}</bdi>
        </li>
      ))}
    </ul>
  );
}
