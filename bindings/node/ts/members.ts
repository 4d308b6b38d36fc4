import { checkedNumber, describe } from "./config";
import { NameError } from "./error";
import { type NativeRecency, native } from "./native";

/**
 * The breakers of a group by key, at most so many: a new key takes the place of the least recently used closed breaker, and
 * only if none is closed that of the least recently used one.
 *
 * @typeParam B - what the group is of
 */
export class Members<B extends object> {
  private readonly recency: NativeRecency;
  private readonly byKey = new Map<string, Member<B>>();
  /** By slot: whose it is, to know whom a new key takes it from. */
  private readonly keys: string[] = [];
  private readonly slots = new Map<B, number>();
  /** The slot used last: a key asked for over and over need not be moved to the front each time. */
  private newest = NO_SLOT;

  /**
   * @param maxKeys - how many there are at most, as the user gave it; undefined for the default
   * @param make - the breaker of a new key; one that throws takes nobody's place
   * @param gone - told of each breaker that is no longer one of them
   * @throws {@link ConfigError} for `maxKeys`
   */
  constructor(
    maxKeys: unknown,
    private readonly make: (key: string) => B,
    private readonly gone: (breaker: B) => void,
  ) {
    this.recency = new (native().Recency)(
      maxKeys === undefined ? native().maxKeysDefault() : checkedNumber("maxKeys", maxKeys),
    );
  }

  /**
   * The breaker of a key, made if there is none, and now the most recently used.
   * @throws {@link NameError}
   */
  for(key: string): B {
    const member = this.byKey.get(key);
    if (member === undefined) return this.add(key);
    if (member.slot !== this.newest) {
      this.recency.touch(member.slot);
      this.newest = member.slot;
    }
    return member.breaker;
  }

  /** How many there are. */
  get size(): number {
    return this.byKey.size;
  }

  /**
   * Forgets a key. Whether there was one.
   * @throws {@link NameError} for what is no text
   */
  delete(key: string): boolean {
    checkText(key);
    const member = this.byKey.get(key);
    if (member === undefined) return false;
    this.byKey.delete(key);
    this.slots.delete(member.breaker);
    this.recency.remove(member.slot);
    this.gone(member.breaker);
    return true;
  }

  /** The breakers, the oldest first. */
  *[Symbol.iterator](): Generator<B, void, undefined> {
    for (const { breaker } of this.byKey.values()) yield breaker;
  }

  /** A breaker has opened or closed; one that was given up no longer has a say. */
  note(breaker: B, closed: boolean): void {
    const slot = this.slots.get(breaker);
    if (slot === undefined) return;
    this.recency.note(slot, closed);
    // A change is a use, too: whoever was used last before it no longer is.
    this.newest = slot;
  }

  private add(key: string): B {
    checkText(key);
    const breaker = this.make(key);
    const slot = this.recency.insert();
    if (this.recency.evicted()) this.evict(slot);
    this.keys[slot] = key;
    this.newest = slot;
    this.slots.set(breaker, slot);
    this.byKey.set(key, { breaker, slot });
    return breaker;
  }

  private evict(slot: number): void {
    const key = this.keys[slot] as string;
    const evicted = this.byKey.get(key);
    this.byKey.delete(key);
    if (evicted === undefined) return;
    this.slots.delete(evicted.breaker);
    this.gone(evicted.breaker);
  }
}

interface Member<B> {
  readonly breaker: B;
  readonly slot: number;
}

const NO_SLOT = -1;

function checkText(key: unknown): void {
  if (typeof key !== "string") throw new NameError(`\`key\` must be a string, got \`${describe(key)}\``);
}
