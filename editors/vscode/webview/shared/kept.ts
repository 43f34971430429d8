/** A component that is drawn again only when it is given something else. */
import { Component, h } from "preact";
import type { ComponentType, VNode } from "preact";

export function kept<P extends object>(Inner: ComponentType<P>): ComponentType<P> {
  return class Kept extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const names = new Set([...Object.keys(this.props), ...Object.keys(next)]) as Set<keyof P>;
      for (const name of names) {
        if (this.props[name] !== next[name]) {
          return true;
        }
      }
      return false;
    }

    override render(): VNode {
      return h(Inner as ComponentType<object>, this.props);
    }
  };
}
