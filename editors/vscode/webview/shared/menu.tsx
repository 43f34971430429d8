/** A menu below or above a button: arrows move, Enter chooses, Escape leaves it and goes back to the button. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./icon.js";

export interface MenuItem {
  label: string;
  icon?: string;
  /** Said below the label, smaller. */
  about?: string;
  run: () => void;
}

export interface MenuProps {
  label: string;
  icon: string;
  items: MenuItem[];
  class?: string;
  /** Where it opens. */
  side?: "above" | "below";
  /** Opens it from elsewhere: each new number does. */
  opened?: number;
}

export function MenuButton(props: MenuProps): JSX.Element {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (props.opened) {
      setOpen(true);
    }
  }, [props.opened]);

  useLayoutEffect(() => {
    if (!open) {
      return undefined;
    }
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: Event): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) {
        setOpen(false);
      }
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("focusin", away);
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("focusin", away);
    };
  }, [open]);

  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!open) {
      return;
    }
    const items = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = (index: number): void => items[(index + items.length) % items.length]?.focus();
    switch (event.key) {
      case "ArrowDown":
        to(at + 1);
        break;
      case "ArrowUp":
        to(at - 1);
        break;
      case "Home":
        to(0);
        break;
      case "End":
        to(items.length - 1);
        break;
      case "Escape":
        close();
        break;
      case "Tab":
        setOpen(false);
        return;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        ref={button}
        class={`icon-button${props.class ? ` ${props.class}` : ""}`}
        aria-label={props.label}
        title={props.label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => {
          setOpen(!open);
        }}
      >
        <Icon name={props.icon} />
      </button>
      {open && (
        <div class={`menu-list ${props.side ?? "below"}`} role="menu" aria-label={props.label}>
          {props.items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              class="menu-item"
              onClick={() => {
                close();
                item.run();
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              <span>
                {item.label}
                {item.about && <small>{item.about}</small>}
              </span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
