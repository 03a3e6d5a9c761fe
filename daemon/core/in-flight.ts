/** What can stand in one `InFlight` at a time. */
export class Member {
  before: Member | null = null;
  after: Member | null = null;
}

/**
 * A set for what enters and leaves it all the time, a request say: a linked list.
 *
 * Not a Set or a Map: when one of those grows or is compacted, V8 leaves its old table pointing to the new one. As soon as one such
 * table has outlived a young collection everything that enters later is carried along with it until the next full
 * collection: that kept a third of all garbage, and cost a quarter of the time.
 */
export class InFlight<T extends Member> {
  readonly #ends = new Member();
  #size = 0;

  constructor() {
    this.#ends.before = this.#ends.after = this.#ends;
  }

  get size(): number {
    return this.#size;
  }

  /** @param member that is in no other. */
  add(member: T): void {
    const last = this.#ends.before ?? this.#ends;
    member.before = last;
    member.after = this.#ends;
    last.after = this.#ends.before = member;
    this.#size += 1;
  }

  /** What is not in it is left alone. */
  delete(member: T): void {
    const { before, after } = member;
    if (before === null || after === null) return;
    before.after = after;
    after.before = before;
    member.before = member.after = null;
    this.#size -= 1;
  }

  /** The one that has been in it for longest. */
  get first(): T | null {
    const { after } = this.#ends;
    return after === null || after === this.#ends ? null : (after as T);
  }

  /** All that are in it now; they may leave while they are gone through. */
  all(): T[] {
    const members: T[] = [];
    for (let member = this.#ends.after; member !== null && member !== this.#ends; member = member.after) {
      members.push(member as T);
    }
    return members;
  }
}
