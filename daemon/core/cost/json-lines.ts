/** A JSON parser that keeps the line of each value, for messages about files that people write. */

export interface JsonNode {
  /** 1 for the first. */
  line: number;
  /** Objects are maps of nodes, lists are arrays of them; otherwise the value itself. */
  value: ReadonlyMap<string, JsonNode> | readonly JsonNode[] | string | number | boolean | null;
}

export class JsonSyntaxError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

const MAX_DEPTH = 16;
// eslint-disable-next-line no-control-regex -- JSON excludes them from strings.
const TOKEN = /[{}[\],:]|"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/y;
const SPACE = /[ \t\r\n]*/y;

/** @throws {JsonSyntaxError} also for repeated members, and for more than 16 levels of nesting. */
export function jsonNode(text: string): JsonNode {
  return new Parser(text).parse();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): JsonNode {
    const node = this.#value(this.#token(), 0);
    if (this.#token() !== '') throw this.#unexpected();
    return node;
  }

  #value(token: string, depth: number): JsonNode {
    const line = this.#line;
    if (depth > MAX_DEPTH) throw new JsonSyntaxError(line, 'nested too deeply');
    if (token === '{') return { line, value: this.#members(depth + 1) };
    if (token === '[') return { line, value: this.#elements(depth + 1) };
    return { line, value: this.#literal(token) };
  }

  #members(depth: number): ReadonlyMap<string, JsonNode> {
    const members = new Map<string, JsonNode>();
    let token = this.#token();
    while (token !== '}') {
      const name = this.#literal(token);
      if (typeof name !== 'string') throw this.#unexpected();
      if (members.has(name)) throw new JsonSyntaxError(this.#line, `a second member ${token}`);
      if (this.#token() !== ':') throw this.#unexpected();
      members.set(name, this.#value(this.#token(), depth));
      token = this.#next('}');
    }
    return members;
  }

  #elements(depth: number): readonly JsonNode[] {
    const elements: JsonNode[] = [];
    let token = this.#token();
    while (token !== ']') {
      elements.push(this.#value(token, depth));
      token = this.#next(']');
    }
    return elements;
  }

  /** After a member or an element. @returns the end, or the token after the comma. */
  #next(end: string): string {
    const token = this.#token();
    if (token === end) return token;
    if (token !== ',') throw this.#unexpected();
    const next = this.#token();
    if (next === end) throw this.#unexpected();
    return next;
  }

  #literal(token: string): string | number | boolean | null {
    try {
      const value: unknown = JSON.parse(token);
      if (typeof value === 'object' && value !== null) throw this.#unexpected();
      return value as string | number | boolean | null;
    } catch {
      throw this.#unexpected();
    }
  }

  /** The next token; '' at the end. */
  #token(): string {
    const text = this.#text;
    SPACE.lastIndex = this.#at;
    const space = SPACE.exec(text)?.[0] ?? '';
    for (const character of space) if (character === '\n') this.#line += 1;
    this.#at += space.length;
    if (this.#at === text.length) return '';
    TOKEN.lastIndex = this.#at;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) throw this.#unexpected();
    this.#at += token.length;
    return token;
  }

  #unexpected(): JsonSyntaxError {
    const isAtEnd = this.#at >= this.#text.length;
    return new JsonSyntaxError(this.#line, isAtEnd ? 'not JSON: it ends too early' : 'not JSON');
  }
}
