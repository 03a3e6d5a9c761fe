/** Carries effects out; what comes of them comes back as actions. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure } from '../../console/failure.js';
import { type ClientOptions, ManagementClient } from '../../daemon/api/client.js';
import type { Action, Change, ContextShown, Effect, Failure as Why, Place, Question, Wake } from '../state/exchange.js';
import { Hidden } from '../state/hidden.js';
import { ask } from './asking.js';
import { make } from './changing.js';
import { conditionalFetch } from './conditional.js';
import { failureFrom } from './failure.js';
import { Followed } from './following.js';
import { writeSecret } from './writing.js';

/** A daemon that can be asked. */
export interface Connected {
  place: Place;
  client: Omit<ClientOptions, 'frontEnd' | 'reason' | 'beforeChange'>;
}

export interface RunnerOptions {
  act: (action: Action) => void;
  /** Finds out where a context leads, and its management token. @throws {Failure} of the command line. */
  connect: (context: string) => Promise<Connected>;
  contexts: () => Promise<readonly ContextShown[]>;
  terminal: {
    /** @returns false where it is too long to be sent. */
    copy(text: string): boolean;
    suspend(): void;
    repaint(): void;
  };
  /** Ends the program. */
  quit: (code: number) => void;
}

const CLOCK = { now: () => Date.now(), monotonic: () => performance.now() };
/** Progress more often would only cost. */
const PROGRESS_EVERY_MS = 100;

export class Runner {
  readonly #options: RunnerOptions;
  readonly #wakes = new Map<Wake, NodeJS.Timeout>();
  #link: Link;

  constructor(options: RunnerOptions, connected: Connected) {
    this.#options = options;
    this.#link = new Link(connected, options);
  }

  run(effect: Effect): void {
    const { act, terminal, quit } = this.#options;
    switch (effect.do) {
      case 'ask':
        this.#link.ask(effect.question);
        return;
      case 'change':
        this.#link.change(effect.change, effect.reason);
        return;
      case 'stop':
        this.#link.stop();
        return;
      case 'follow':
        this.#link.followed.set(effect.streams);
        return;
      case 'wake':
        this.#wake(effect.name, effect.afterMs);
        return;
      case 'copy': {
        const text = effect.text instanceof Hidden ? effect.text.reveal() : effect.text;
        act(terminal.copy(text) ? { on: 'copied', what: effect.what } : { on: 'notCopied', what: effect.what });
        return;
      }
      case 'write':
        void writeSecret(effect.secret, effect.path).then(act);
        return;
      case 'connect':
        void this.#connect(effect.context);
        return;
      case 'suspend':
        terminal.suspend();
        return;
      case 'repaint':
        terminal.repaint();
        return;
      case 'quit':
        quit(effect.code);
    }
  }

  /** Starts no further part of a change. Resolves once the changes on their way were answered, or after `ms` without an answer. */
  async lastAnswers(ms: number): Promise<void> {
    this.#link.stop();
    await Promise.race([this.#link.changesAnswered(), sleep(ms)]);
  }

  /** Nothing more is asked, and nothing more is told. */
  end(): void {
    this.#link.end();
    for (const timer of this.#wakes.values()) clearTimeout(timer);
    this.#wakes.clear();
  }

  #wake(name: Wake, afterMs: number): void {
    clearTimeout(this.#wakes.get(name));
    const timer = setTimeout(() => {
      this.#wakes.delete(name);
      this.#options.act({ on: 'woke', name });
    }, afterMs);
    this.#wakes.set(name, timer);
  }

  async #connect(context: string): Promise<void> {
    const { act, connect } = this.#options;
    try {
      const connected = await connect(context);
      this.#link.end();
      this.#link = new Link(connected, this.#options);
      act({ on: 'connected', place: connected.place });
    } catch (error) {
      act({ on: 'notConnected', context, failure: failureFrom(error, context) });
    }
  }
}

/** What goes on with one daemon; when another is looked at, nothing of it is heard any more. */
class Link {
  readonly followed: Followed;
  readonly #options: Pick<RunnerOptions, 'contexts'>;
  readonly #clientOptions: ClientOptions;
  readonly #client: ManagementClient;
  readonly #act: (action: Action) => void;
  readonly #failureOf: (error: unknown) => Why;
  readonly #over = new AbortController();
  /** What is on its way is not asked for once more. */
  readonly #asked = new Set<string>();
  #bulk = new AbortController();
  readonly #changes = new Set<Promise<void>>();
  #progressMs = 0;

  constructor({ place, client }: Connected, options: Pick<RunnerOptions, 'act' | 'contexts'>) {
    this.#options = options;
    this.#act = (action) => {
      if (!this.#over.signal.aborted) options.act(action);
    };
    this.#failureOf = (error) => failureFrom(error, place.server);
    const fetch = conditionalFetch({
      fetch: client.fetch,
      clock: CLOCK,
      onAnswer: ({ atMs, dateMs }) => {
        this.#act({ on: 'heard', skewMs: dateMs === null ? null : dateMs - atMs });
      },
    });
    this.#clientOptions = { ...client, fetch, frontEnd: 'tui', ...(place.isReadonly && { beforeChange: refuse }) };
    this.#client = new ManagementClient(this.#clientOptions);
    this.followed = new Followed({ client: this.#client, act: this.#act, failureOf: this.#failureOf });
  }

  ask(question: Question): void {
    const key = JSON.stringify(question);
    if (this.#asked.has(key)) return;
    this.#asked.add(key);
    const isLong = question.of === 'everyToken';
    if (isLong) this.#bulk = new AbortController();
    const enough = isLong ? AbortSignal.any([this.#over.signal, this.#bulk.signal]) : this.#over.signal;
    const progress = (words: string, done: number, of: number) => {
      this.#progress(words, done, of);
    };
    ask({ client: this.#client, contexts: this.#options.contexts, enough, progress }, question)
      .then(
        (answered) => {
          this.#act({ on: 'answered', ...answered });
        },
        (error: unknown) => {
          if (!enough.aborted) this.#act({ on: 'failed', question, failure: this.#failureOf(error) });
        },
      )
      .finally(() => this.#asked.delete(key));
  }

  change(change: Change, reason: string | null): void {
    const client = new ManagementClient({ ...this.#clientOptions, ...(reason !== null && { reason }) });
    const bulk = (this.#bulk = new AbortController());
    const progress = (done: number, of: number) => {
      this.#progress(change.what === 'revoke' ? 'Revoking' : 'Reactivating', done, of);
    };
    const answered = make({ client, enough: bulk.signal, progress, failureOf: this.#failureOf }, change).then(
      (outcome) => {
        this.#act({ on: 'changed', change, outcome });
      },
      (error: unknown) => {
        this.#act({ on: 'refused', change, failure: this.#failureOf(error) });
      },
    );
    this.#changes.add(answered);
    void answered.finally(() => this.#changes.delete(answered));
  }

  async changesAnswered(): Promise<void> {
    await Promise.all(this.#changes);
  }

  stop(): void {
    this.#bulk.abort();
  }

  end(): void {
    this.#over.abort();
    this.#bulk.abort();
    this.followed.end();
  }

  #progress(words: string, done: number, of: number): void {
    const nowMs = CLOCK.monotonic();
    if (nowMs - this.#progressMs < PROGRESS_EVERY_MS) return;
    this.#progressMs = nowMs;
    this.#act({ on: 'progress', words, done, of });
  }
}

/** Behind what the keys say already: whatever is wrong there, nothing leaves. */
const refuse = () =>
  Promise.reject(new Failure(EXIT.refused, 'read-only, nothing was sent', { code: 'context_readonly' }));
