import type { Clock, Log } from '../../core/ports.js';
import type { AuditFile } from './audit-file.js';
import type { AnchorStore } from './chain.js';
import { rotationsOf } from './rotations.js';
import { firstLineOf } from './tail.js';

const ANCHOR_EVERY_MS = 60_000;

/** Notes in the database how far a file reaches: every minute in which it grew, before it is put aside, and at the end. */
export class Anchoring {
  #line = 0;
  #cancel: (() => void) | null = null;

  constructor(
    private readonly file: AuditFile,
    private readonly store: AnchorStore,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  begin(): void {
    this.#cancel = this.clock.after(ANCHOR_EVERY_MS, () => {
      void this.anchor();
      this.begin();
    });
  }

  /** What cannot be noted now is with the next one: each stands for all lines before it. */
  async anchor(): Promise<void> {
    const { head, seq, path } = this.file;
    if (head.line === this.#line) return;
    try {
      await this.store.keep(path, { line: head.line, head: head.digest, seq, atMs: this.clock.now() });
      this.#line = Math.max(this.#line, head.line);
    } catch (error) {
      this.log.warn('how far the audit file reaches could not be noted', { path, error });
    }
  }

  /** The file is put aside, and the oldest of those before it may go. */
  async rotated(): Promise<void> {
    await this.anchor();
    const { path } = this.file;
    try {
      const [oldest] = await rotationsOf(path);
      const first = oldest === undefined ? null : await firstLineOf(oldest);
      if (first !== null) await this.store.drop(path, first);
    } catch (error) {
      this.log.warn('anchors of lines that are gone could not be removed', { path, error });
    }
  }

  async close(): Promise<void> {
    this.#cancel?.();
    await this.anchor();
  }
}
