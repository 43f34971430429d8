/** The page of a task board: what is to be done in columns, and what may be done with each task. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Board, Column as ColumnOf, ColumnName } from "../../src/shared/board.js";
import { Icon } from "../shared/icon.js";
import { Card, titleId } from "./card.js";
import type { Page } from "./page.js";

const ICONS: Readonly<Record<ColumnName, string>> = {
  waiting: "watch",
  ready: "circle-large-outline",
  active: "play-circle",
  done: "pass",
  blocked: "error",
  cancelled: "circle-slash",
};

function Column({ page, column }: { page: Page; column: ColumnOf }): JSX.Element {
  const [over, setOver] = useState(false);
  const heading = `column-${column.name}`;
  return (
    <section
      class={`column ${column.name}${over ? " over" : ""}${column.count === 0 ? " empty" : ""}`}
      aria-labelledby={heading}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => {
        setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const taskId = event.dataTransfer?.getData("text/plain") ?? "";
        const here = column.cards.some((card) => card.id === taskId);
        if (taskId !== "" && !here) {
          page.post({ type: "move", taskId, to: column.name });
        }
      }}
    >
      <h2 id={heading}>
        <Icon name={ICONS[column.name]} />
        {column.title} <span class="count">{column.count}</span>
      </h2>
      {column.before > 0 && <p class="before">… {column.before} before these</p>}
      {column.cards.length > 0 && (
        <ul class="cards" role="list">
          {column.cards.map((card) => (
            <Card
              key={card.id}
              page={page}
              card={card}
              column={column.name}
              current={page.current === card.id}
            />
          ))}
        </ul>
      )}
      {column.after > 0 && <p class="before">… {column.after} more: the view of tasks has them</p>}
    </section>
  );
}

function Head({ page, board }: { page: Page; board: Board }): JSX.Element {
  const { required } = board;
  return (
    <header>
      <div class="names">
        <h1 dir="auto">{board.title}</h1>
        {!board.empty && (
          <p>
            {board.counts}
            {required && (
              <span class={`required ${required.done ? "done" : "open"}`}>
                <Icon name={required.done ? "pass" : "circle-large-outline"} />
                {required.text}
              </span>
            )}
          </p>
        )}
        {board.members.length > 0 && (
          <p class="members">
            <span>Members</span>
            {board.members.map((member, at) => (
              <bdi key={`${at} ${member}`} class="member">
                {member}
              </bdi>
            ))}
          </p>
        )}
      </div>
      <div class="tools">
        <button
          type="button"
          class="choice first"
          onClick={() => {
            page.post({ type: "add" });
          }}
        >
          <Icon name="add" />
          Add a task
        </button>
        <button
          type="button"
          class="choice"
          onClick={() => {
            page.post({ type: "write" });
          }}
        >
          <Icon name="mail" />
          Write to the group
        </button>
        <button
          type="button"
          class="choice"
          onClick={() => {
            page.post({ type: "chat" });
          }}
        >
          <Icon name="comment-discussion" />
          Open the chat
        </button>
      </div>
    </header>
  );
}

function Body({ page, board }: { page: Page; board: Board }): JSX.Element {
  if (board.empty) {
    return (
      <div class="nothing">
        <Icon name="checklist" />
        <p>
          There is no task yet. The first one begins the group: agents claim tasks, and are given
          them.
        </p>
      </div>
    );
  }
  return (
    <>
      <div class="columns">
        {page.columns().map((column) => (
          <Column key={column.name} page={page} column={column} />
        ))}
      </div>
      {board.more !== undefined && <p class="more">{board.more}</p>}
      {board.messages.length > 0 && (
        <section class="messages" aria-labelledby="messages">
          <h2 id="messages">Messages to this session</h2>
          <ul role="list">
            {board.messages.map((message, at) => (
              <li key={`${at} ${message}`} dir="auto">
                {message}
              </li>
            ))}
          </ul>
        </section>
      )}
      <p class="keys">
        On a task: arrow keys go to others, Shift with an arrow moves it, Enter shows all of it.
      </p>
    </>
  );
}

/** A card that has gone into another column keeps the focus that it had. */
function useFocusKept(page: Page): void {
  const held = useRef(false);
  useEffect(() => {
    const look = (): void => {
      held.current = document.activeElement?.closest(".card") != null;
    };
    const back = (): void => {
      if (held.current && document.activeElement === document.body && page.current !== undefined) {
        document.getElementById(titleId(page.current))?.focus();
      }
    };
    document.addEventListener("focusin", look);
    window.addEventListener("focus", back);
    return () => {
      document.removeEventListener("focusin", look);
      window.removeEventListener("focus", back);
    };
  }, [page]);
  useLayoutEffect(() => {
    const lost = held.current && document.activeElement === document.body;
    if (lost && document.hasFocus() && page.current !== undefined) {
      document.getElementById(titleId(page.current))?.focus();
    }
  });
}

export function App({ page }: { page: Page }): JSX.Element {
  const [, setTurn] = useState(0);
  useLayoutEffect(() => {
    page.onDraw(() => {
      setTurn((turn) => turn + 1);
    });
  }, [page]);
  useFocusKept(page);
  const { board, notice, said } = page;
  return (
    <main>
      {board ? <Head page={page} board={board} /> : <h1>Tasks</h1>}
      {notice !== undefined && (
        <p class="notice">
          <Icon name="info" />
          <span dir="auto">{notice}</span>
          <button
            type="button"
            class="choice"
            onClick={() => {
              page.post({ type: "refresh" });
            }}
          >
            Ask again
          </button>
        </p>
      )}
      {said && (
        <p class={`said ${said.failed ? "failed" : "done"}`}>
          <Icon name={said.failed ? "error" : "pass"} />
          <span dir="auto">{said.text}</span>
          <button
            type="button"
            class="icon-button"
            aria-label="Dismiss"
            title="Dismiss"
            onClick={() => {
              page.forget();
            }}
          >
            <Icon name="close" />
          </button>
        </p>
      )}
      {board && <Body page={page} board={board} />}
    </main>
  );
}
