import { Interned } from './interned.js';

/** Bytes that the ID of a token takes with its entries in maps and lists, measured. */
export const TOKEN_BYTES = 190;

/** The tokens, with their projects, and the models that the cells of the rings refer to by number. */
export class Subjects {
  readonly tokens = new Interned();
  readonly projects = new Interned();
  readonly models = new Interned();
  readonly #projectOf: number[] = [];
  #pins = 0;

  /** A report that is being built refers to subjects by number: meanwhile none may be released. */
  get isPinned(): boolean {
    return this.#pins > 0;
  }

  async pinnedWhile<T>(work: () => Promise<T>): Promise<T> {
    this.#pins += 1;
    try {
      return await work();
    } finally {
      this.#pins -= 1;
    }
  }

  get bytes(): number {
    return (this.tokens.size + this.projects.size) * TOKEN_BYTES;
  }

  projectOf(token: number): number {
    return this.#projectOf[token] ?? 0;
  }

  retainToken(tokenId: string, projectId: string): number {
    const isNew = this.tokens.find(tokenId) === undefined;
    const token = this.tokens.retain(tokenId);
    if (isNew) this.#projectOf[token] = this.projects.retain(projectId);
    return token;
  }

  releaseToken(token: number): void {
    if (this.tokens.release(token)) this.projects.release(this.projectOf(token));
  }
}
