/**
 * Events for open pages, as server-sent events (HTML standard).
 *
 * A page gets HTML that the server rendered, so that the script in the browser only inserts it. There are three kinds of messages:
 * `rows` with HTML, `skipped` with the number of events that were left out, and `beat` every 2.5 seconds. A beat means that the daemon
 * has just confirmed the session, so a page without beats is stale. When the session has ended, so does the stream.
 *
 * **Limits.** Up to 20 streams are open. A stream begins with up to 200 earlier events, as many as the page shows. Of a later burst only
 * the last 20 are rendered, because nobody can read all of them.
 * Nothing is written while the browser does not take what it has, and a browser that takes nothing for a while is disconnected.
 */
import type { Request, Response } from 'express';
import type { ReactElement } from 'react';
import type { StreamItem, StreamOptions } from '../api/client.js';
import type { WireEvent } from '../api/contract.js';
import type { Clock } from '../core/ports.js';
import { queryOf } from './forms.js';
import { Problem } from './problem.js';

/** The events of a page. */
export interface PageStream {
  open: (options: StreamOptions) => AsyncIterable<StreamItem<WireEvent>>;
  /** @param events oldest first. */
  show: (events: readonly WireEvent[]) => ReactElement;
}

export interface PageStreamOptions extends PageStream {
  fragment: (part: ReactElement) => string;
  /** @throws if the management API does not say so. */
  isSessionActive: () => Promise<boolean>;
}

const MAX_OPEN = 20;
/** Maximum number of events in the first message, as many as the page shows, and in the others. */
const MAX_FIRST_ROWS = 200;
const MAX_ROWS = 20;
const FLUSH_EVERY_MS = 500;
const BEAT_EVERY_MS = 2_500;
const MAX_STALLED_BEATS = 12;
const RECONNECT_DELAY_MS = 2_000;

export class PageStreams {
  readonly #clock: Clock;
  readonly #open = new Set<AbortController>();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the response has ended. @throws {ApiError} and {Unreachable} if the events cannot be opened, {Problem} if too many streams are open. */
  async serve(req: Request, res: Response, options: PageStreamOptions): Promise<void> {
    if (this.#hasEnded || this.#open.size >= MAX_OPEN) {
      throw new Problem(503, 'Too many live pages', 'Close some of them, or try again in a moment.');
    }
    const controller = new AbortController();
    const { signal } = controller;
    const end = () => {
      controller.abort();
    };
    this.#open.add(controller);
    res.once('close', end);
    const connection = new Connection(res, this.#clock, options, end);
    try {
      const onOpen = () => {
        connection.begin();
      };
      for await (const { id, item } of options.open({ lastEventId: lastEventIdOf(req), signal, onOpen })) {
        connection.add(id, item);
      }
      connection.flush();
    } finally {
      connection.end();
      end();
      this.#open.delete(controller);
    }
  }

  /** Ends all streams, and accepts no more. */
  end(): void {
    this.#hasEnded = true;
    for (const controller of this.#open) controller.abort();
  }
}

/** Browsers send the header when they reconnect by themselves. The script sends the query when it opens a stream again. */
const lastEventIdOf = (req: Request): string | undefined =>
  req.get('last-event-id') ?? queryOf(req).get('last_event_id') ?? undefined;

/** One open stream. */
class Connection {
  readonly #res: Response;
  readonly #clock: Clock;
  readonly #options: PageStreamOptions;
  readonly #abort: () => void;
  #waiting: WireEvent[] = [];
  #lastId = '';
  #skipped = 0;
  /** Whether no events were sent yet. */
  #isFirst = true;
  #stalledBeats = 0;
  #cancelFlush: (() => void) | null = null;
  #cancelBeat: () => void = () => undefined;
  #hasEnded = false;

  constructor(res: Response, clock: Clock, options: PageStreamOptions, abort: () => void) {
    this.#res = res;
    this.#clock = clock;
    this.#options = options;
    this.#abort = abort;
  }

  begin(): void {
    this.#res.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'X-Accel-Buffering': 'no', // Otherwise nginx would buffer events.
    });
    this.#res.write(`retry: ${RECONNECT_DELAY_MS}\n${message('beat', '')}`);
    this.#scheduleBeat();
  }

  add(id: string, event: WireEvent): void {
    this.#lastId = id;
    this.#waiting.push(event);
    if (this.#waiting.length > (this.#isFirst ? MAX_FIRST_ROWS : MAX_ROWS)) {
      this.#waiting.shift();
      // The page would not show older ones either.
      if (!this.#isFirst) this.#skipped += 1;
    }
    this.#cancelFlush ??= this.#clock.after(FLUSH_EVERY_MS, () => {
      this.#cancelFlush = null;
      this.flush();
    });
  }

  flush(): void {
    const events = this.#waiting;
    // With a full buffer the next beat tries again.
    if (this.#hasEnded || events.length === 0 || this.#res.writableNeedDrain) return;
    const { fragment, show } = this.#options;
    const skipped = this.#skipped === 0 ? '' : message('skipped', String(this.#skipped));
    this.#res.write(`${skipped}id: ${this.#lastId}\n${message('rows', fragment(show(events)))}`);
    this.#waiting = [];
    this.#skipped = 0;
    this.#isFirst = false;
  }

  end(): void {
    this.#hasEnded = true;
    this.#cancelFlush?.();
    this.#cancelBeat();
    if (this.#res.headersSent) this.#res.end();
  }

  #scheduleBeat(): void {
    this.#cancelBeat = this.#clock.after(BEAT_EVERY_MS, () => {
      void this.#beat().then(() => {
        if (!this.#hasEnded) this.#scheduleBeat();
      });
    });
  }

  async #beat(): Promise<void> {
    if (this.#res.writableNeedDrain) {
      this.#stalledBeats += 1;
      if (this.#stalledBeats > MAX_STALLED_BEATS) this.#res.destroy();
      return;
    }
    this.#stalledBeats = 0;
    try {
      if (!(await this.#options.isSessionActive())) this.#abort();
      else if (!this.#hasEnded) this.#res.write(message('beat', ''));
    } catch {
      return; // Without a beat the page becomes stale, which is true.
    }
    this.flush();
  }
}

/** A message needs at least one line of data, and each line of its data a field. */
function message(kind: 'rows' | 'skipped' | 'beat', data: string): string {
  const lines = data.split(/\r\n|\n|\r/).map((line) => `data: ${line}\n`);
  return `event: ${kind}\n${lines.join('')}\n`;
}
