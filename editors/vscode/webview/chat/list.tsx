/**
 * The messages. Of many the last ones are drawn, and earlier ones as the person goes up to them. The end is
 * followed only while the person is there.
 */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Card } from "../../src/shared/chat.js";
import { Guard } from "../shared/guard.js";
import { Icon } from "../shared/icon.js";
import { Approval } from "./cards/approval.js";
import { CardView } from "./cards/card.js";
import { onProseClick } from "./clicks.js";
import { usePage } from "./page.js";
import type { Page } from "./page.js";
import { isBare } from "./phases.js";
import { Scroller } from "./scroller.js";

/** So far (px) below the top a card is put that was searched for, with so many cards above it. */
const FOUND_TOP = 40;
const FOUND_ABOVE = 10;

/** How many cards are drawn while the end is followed, and how many more with each step up. */
const WINDOW = 200;
const STEP = 100;

/** What else than the card itself changes how it looks. */
function markOf(page: Page, card: Card): string {
  const id = card.kind === "tool" ? card.approval?.approvalId : undefined;
  if (id === undefined) {
    return "";
  }
  const held = page.arrivals.rest(id, performance.now()) > 0;
  return `${held ? "held" : ""}${page.answering.has(id) ? "busy" : ""}${page.refused.get(id) ?? ""}`;
}

/** Which part of the cards is drawn. */
interface Drawn {
  /** The first card; absent while the end is followed. */
  first: string | undefined;
  begun: number;
  earlier: number;
  /** Where a card stood before others came above it. */
  mark: ReturnType<Scroller["mark"]>;
  /** Older cards are on their way. */
  asked: boolean;
}

export function MessageList({ empty }: { empty: JSX.Element }): JSX.Element {
  const page = usePage();
  const { state } = page;
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const scroller = useRef<Scroller | undefined>(undefined);
  const [away, setAway] = useState(false);
  const [news, setNews] = useState(false);
  const [found, setFound] = useState<{ card: string; begun: number } | undefined>(undefined);
  const [, redraw] = useState({});

  const kept = useRef<Drawn | undefined>(undefined);
  let drawn = kept.current;
  if (!drawn || drawn.begun !== state.begun) {
    const { begun, earlier } = state;
    drawn = { first: undefined, begun, earlier, mark: undefined, asked: false };
  } else if (drawn.earlier !== state.earlier) {
    // Of older cards that came, all are drawn: the person asked for them.
    drawn.earlier = state.earlier;
    drawn.first = state.cards[0]?.id;
    drawn.mark = scroller.current?.mark();
    drawn.asked = false;
  }
  kept.current = drawn;

  const at = drawn.first === undefined ? undefined : state.at.get(drawn.first);
  const from = at ?? Math.max(0, state.cards.length - WINDOW);
  const cards = state.cards.slice(from);
  const last = state.cards.at(-1);

  const showEarlier = (): void => {
    const { current } = kept;
    const { cards: all, older, at: index } = page.state;
    const now = current?.first === undefined ? undefined : index.get(current.first);
    const top = now ?? Math.max(0, all.length - WINDOW);
    if (!current) {
      return;
    }
    scroller.current?.stay();
    if (top > 0) {
      current.mark = scroller.current?.mark();
      current.first = all[Math.max(0, top - STEP)]?.id;
      redraw({});
    } else if (older) {
      current.asked = true;
      page.post({ type: "older" });
    }
  };

  useEffect(() => {
    if (!box.current || !inner.current) {
      return undefined;
    }
    const made = new Scroller(box.current, inner.current, {
      left: () => {
        const { cards: all } = page.state;
        if (kept.current) {
          kept.current.first ??= all[Math.max(0, all.length - WINDOW)]?.id;
        }
        setAway(true);
      },
      reached: () => {
        if (kept.current) {
          kept.current.first = undefined;
        }
        setAway(false);
        setNews(false);
        page.saved.setPlace(undefined);
      },
      rested: (card, offset) => {
        page.saved.setPlace({ session: page.session, card, offset });
      },
      top: () => {
        if (kept.current?.asked === false) {
          showEarlier();
        }
      },
    });
    scroller.current = made;
    return () => {
      made.dispose();
    };
  }, [page]);

  useEffect(() => page.onSent(() => scroller.current?.toEnd()), [page]);

  // Each time everything is told anew, the person is put where they were.
  useEffect(() => {
    const { place } = page.saved;
    setNews(false);
    if (place && place.session === page.session && state.at.has(place.card)) {
      scroller.current?.restore(place.card, place.offset);
    } else {
      scroller.current?.toEnd();
    }
  }, [page, state.begun]);

  useEffect(
    () =>
      page.onTold((message) => {
        if (message.type !== "found" || !kept.current) {
          return;
        }
        const { cards: all, at: index, begun } = page.state;
        const place = index.get(message.cardId) ?? 0;
        scroller.current?.stay();
        const drawnFrom = index.get(kept.current.first ?? "") ?? all.length;
        if (place < drawnFrom) {
          kept.current.first = all[Math.max(0, place - FOUND_ABOVE)]?.id;
        }
        page.saved.setPlace({ session: page.session, card: message.cardId, offset: FOUND_TOP });
        setFound({ card: message.cardId, begun });
      }),
    [page],
  );

  // Once it is drawn; a place that the list would have gone to otherwise gives way to it.
  useEffect(() => {
    if (found) {
      scroller.current?.restore(found.card, FOUND_TOP);
    }
  }, [found]);

  // What comes in front moves nothing of what is seen.
  useLayoutEffect(() => {
    const mark = kept.current?.mark;
    if (kept.current && mark) {
      kept.current.mark = undefined;
      scroller.current?.hold(mark.id, mark.top);
    }
  });

  useEffect(() => {
    if (away) {
      setNews(true);
    }
  }, [last]);

  return (
    <div class="scroll-frame">
      <div
        class="scroller"
        ref={box}
        tabIndex={0}
        role="log"
        aria-live="polite"
        aria-relevant="additions"
        aria-label="Messages"
        onClick={(event) => {
          onProseClick(page, event);
        }}
        onAuxClick={(event) => {
          onProseClick(page, event);
        }}
      >
        <div class="list" ref={inner}>
          {(from > 0 || state.older) && (
            <p class="earlier">
              <button type="button" class="link" onClick={showEarlier}>
                Show earlier messages
              </button>
            </p>
          )}
          {cards.map((card) => (
            <CardView
              key={card.id}
              card={card}
              mark={markOf(page, card)}
              found={found?.card === card.id && found.begun === state.begun}
            />
          ))}
          {state.approvals.length > 0 && <h2 class="unseen">Waits for your answer</h2>}
          {state.approvals.map((approval) => (
            <article
              class="card card-tool"
              key={`asked-${approval.approvalId}`}
              aria-label="approval"
            >
              <Guard
                of={approval}
                instead={<p class="warn">An approval that cannot be shown here.</p>}
              >
                <Approval approval={approval} />
              </Guard>
            </article>
          ))}
          {isBare(state) && empty}
        </div>
      </div>
      {away && (
        <button
          type="button"
          class={`to-end${news ? " has-news" : ""}`}
          onClick={() => {
            scroller.current?.toEnd();
          }}
        >
          <Icon name="arrow-down" />
          {news ? "New messages" : "To the end"}
        </button>
      )}
    </div>
  );
}
