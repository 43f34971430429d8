/** Keeps what cannot be drawn from taking the rest of the page along. */
import { Component } from "preact";
import type { ComponentChildren } from "preact";

interface Props {
  /** What is drawn: another one is tried anew. */
  of: unknown;
  /** What stands there instead. */
  instead: ComponentChildren;
  children: ComponentChildren;
}

export class Guard extends Component<Props, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override componentDidCatch(error: unknown): void {
    console.error(error);
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.failed && before.of !== this.props.of) {
      this.setState({ failed: false });
    }
  }

  override render(): ComponentChildren {
    return this.state.failed ? this.props.instead : this.props.children;
  }
}
