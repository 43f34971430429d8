import type { JSX } from "preact";

/** A codicon. It is never all that says something, so it is hidden from those who listen. */
export function Icon({ name, class: more }: { name: string; class?: string }): JSX.Element {
  return <span class={`codicon codicon-${name}${more ? ` ${more}` : ""}`} aria-hidden="true" />;
}

/** A button that is an icon; its name is what is read out, and its tooltip. */
export function IconButton(props: {
  icon: string;
  label: string;
  onPress: () => void;
  class?: string;
  disabled?: boolean;
  pressed?: boolean;
}): JSX.Element {
  return (
    <button
      type="button"
      class={`icon-button${props.class ? ` ${props.class}` : ""}`}
      aria-label={props.label}
      title={props.label}
      disabled={props.disabled ?? false}
      {...(props.pressed === undefined ? {} : { "aria-pressed": props.pressed })}
      onClick={props.onPress}
    >
      <Icon name={props.icon} />
    </button>
  );
}
