/** Small numbers for strings, for tables of typed arrays. A number is free for another string when its last user has released it. */
export class Interned {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #users: number[] = [];
  readonly #free: number[] = [];

  /** Number of different strings. */
  get size(): number {
    return this.#numbers.size;
  }

  /** All numbers are below it. */
  get end(): number {
    return this.#texts.length;
  }

  /** The number of a string that is in use. */
  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  textOf(number: number): string {
    return this.#texts[number] ?? '';
  }

  /** Adds a user of the string. */
  retain(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) {
      this.#users[known] = (this.#users[known] ?? 0) + 1;
      return known;
    }
    const number = this.#free.pop() ?? this.#texts.length;
    this.#texts[number] = text;
    this.#users[number] = 1;
    this.#numbers.set(text, number);
    return number;
  }

  /** @returns whether that was the last user. */
  release(number: number): boolean {
    const users = (this.#users[number] ?? 0) - 1;
    this.#users[number] = users;
    if (users > 0) return false;
    this.#numbers.delete(this.textOf(number));
    this.#texts[number] = '';
    this.#free.push(number);
    return true;
  }
}
