/** Who is told of what other instances announce: the circuits of one store, by their names, as long as somebody has them. */

import type { Announcement } from "./native-shared";

/** A circuit that may be told. */
export interface Listener {
  readonly name: string;
  /** Takes a message, read and as it came. */
  heard(announcement: Announcement, message: string): void;
}

export class Audience {
  private readonly byName = new Map<string, WeakRef<Listener>[]>();
  /** How many have to come before those that are gone are looked for again. */
  private room = 1024;

  add(listener: Listener): void {
    this.byName.set(listener.name, [...this.present(listener.name), new WeakRef(listener)]);
    if (this.byName.size <= this.room) return;
    for (const name of [...this.byName.keys()]) if (this.present(name).length === 0) this.byName.delete(name);
    this.room = Math.max(1024, 2 * this.byName.size);
  }

  tell(announcement: Announcement, message: string): void {
    for (const listener of this.present(announcement.circuit)) listener.deref()?.heard(announcement, message);
  }

  private present(name: string): WeakRef<Listener>[] {
    return (this.byName.get(name) ?? []).filter((listener) => listener.deref() !== undefined);
  }
}
