/** What is noted of a request's body while its members are read, for the bound of its cost. */

/**
 * A template may write a member or an entry of data on a line of its own, with its indent, or within tags with its name. The longest that
 * is known has 16 tokens for an argument of a call: `<｜DSML｜parameter name="…" string="true">…</｜DSML｜parameter>`.
 */
const TOKENS_PER_MEMBER = 16;
/** `<`, as some templates write it. */
const ESCAPE_BYTES = '\\u003c'.length;

export class Reading {
  /** Why there is no bound; null while there may be one. */
  why: string | null = null;
  /** Members that were read, at any depth. */
  members = 0;
  /** Images, audios and files. */
  parts = 0;
  /** Tokens that the provider may add to what is not a part. */
  added = 0;
  hasTools = false;
  /** In the formats of OpenAI. */
  hasFiles = false;

  /** The first reason counts. */
  refuse(why: string): void {
    this.why ??= why;
  }

  refuseMember(name: string): void {
    this.why ??= `the member ${this.shown(name)} is not known`;
  }

  /** A name that the client wrote, as a message may show it. */
  shown(name: string): string {
    return /^[\w.-]{1,40}$/.test(name) ? name : 'with an unusual name';
  }

  /** Whatever is in this value. */
  pass(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (const entry of value) if (typeof entry === 'object') this.pass(entry);
      return;
    }
    for (const name in value) {
      this.members += 1;
      const member = (value as Record<string, unknown>)[name];
      if (typeof member === 'object') this.pass(member);
    }
  }

  /** Data that may be written in another way before the model reads it. */
  passData(value: unknown, depth = 0): void {
    if (typeof value === 'string') this.passText(value);
    if (typeof value !== 'object' || value === null) return;
    const added = TOKENS_PER_MEMBER + depth;
    if (Array.isArray(value)) {
      this.added += added * value.length;
      for (const entry of value) this.passData(entry, depth + 1);
      return;
    }
    for (const name in value) {
      this.members += 1;
      this.added += added;
      this.passText(name);
      this.passData((value as Record<string, unknown>)[name], depth + 1);
    }
  }

  /** Text that may be written as a JSON string, with escapes. */
  passText(text: string): void {
    let added = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      // Each half of a pair is written so, and has two bytes in UTF-8, as other characters have at least.
      if (code >= 0x80) added += ESCAPE_BYTES - 2;
      // `&`, `'`, `<`, `>`: as it may stand in HTML.
      else if (code === 0x26 || code === 0x27 || code === 0x3c || code === 0x3e) added += ESCAPE_BYTES - 1;
    }
    this.added += added;
  }

  /** Text that may be parsed as JSON, and written as data. */
  passJson(text: string): void {
    this.passText(text);
    let entries = 1;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === 0x2c || code === 0x5b || code === 0x7b) entries += 1;
    }
    this.added += TOKENS_PER_MEMBER * entries;
  }

  /** The same for each text of a value whose members were read. */
  addEscapes(value: unknown): void {
    if (typeof value === 'string') this.passText(value);
    else if (typeof value === 'object' && value !== null)
      for (const entry of Object.values(value)) this.addEscapes(entry);
  }
}
