/** Collects what the bound of a request depends on, while its members are read. */

/**
 * A template may write each member or entry of data on an indented line of its own, or within tags with its name. The longest known form
 * has 16 tokens, for an argument of a call: `<｜DSML｜parameter name="…" string="true">…</｜DSML｜parameter>`.
 */
const TOKENS_PER_MEMBER = 16;
/** `<`, as some templates write it. */
const ESCAPE_BYTES = '\\u003c'.length;

export class Reading {
  /** Why there is no bound; null while there may be one. */
  why: string | null = null;
  /** Number of members that were read, at any depth. */
  members = 0;
  /** Number of images, audios and files. */
  parts = 0;
  /** Tokens that the provider may add to the text. */
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

  /** A name from the request, as a message may show it. */
  shown(name: string): string {
    return /^[\w.-]{1,40}$/.test(name) ? name : 'with an unusual name';
  }

  /** Counts the members of any value. */
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

  /** Data that a provider may write in another way before the model reads it. */
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

  /** Text that a provider may write as a JSON string, with escapes. */
  passText(text: string): void {
    let added = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      // Each half of a surrogate pair has an escape, and two bytes in UTF-8. Other characters have at least two.
      if (code >= 0x80) added += ESCAPE_BYTES - 2;
      // `&`, `'`, `<` and `>`, which some serializers escape for HTML.
      else if (code === 0x26 || code === 0x27 || code === 0x3c || code === 0x3e) added += ESCAPE_BYTES - 1;
    }
    this.added += added;
  }

  /** Text that a provider may parse as JSON, and write as data. */
  passJson(text: string): void {
    this.passText(text);
    let entries = 1;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === 0x2c || code === 0x5b || code === 0x7b) entries += 1;
    }
    this.added += TOKENS_PER_MEMBER * entries;
  }

  /** Adds the escapes of each text in a value whose members were read. */
  addEscapes(value: unknown): void {
    if (typeof value === 'string') this.passText(value);
    else if (typeof value === 'object' && value !== null)
      for (const entry of Object.values(value)) this.addEscapes(entry);
  }
}
