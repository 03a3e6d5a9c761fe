/** Runs effects and dispatches their results as actions. */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure, failureOf } from '../../console/failure.js';
import { reportedUser } from '../../console/reported-user.js';
import { ApiError, type ClientOptions, ManagementClient } from '../../daemon/api/client.js';
import type {
  Action,
  ChangeRequest,
  ContextSummary,
  Effect,
  Failure as RequestFailure,
  Target,
  DataRequest,
  Wake,
} from '../state/exchange.js';
import type { ExportedList } from '../state/exported-list.js';
import type { Saved, SavedChange } from '../state/saved.js';
import { BULK_WORDS } from '../state/state.js';
import { Secret } from '../state/secret.js';
import { load } from './load.js';
import { applyChange } from './apply-change.js';
import { exportList } from './export.js';
import { wholePath } from './files.js';
import { conditionalFetch } from './conditional-fetch.js';
import { StreamFollower } from './stream-follower.js';

/** A daemon and the client options for it. */
export interface Connected {
  target: Target;
  /** What is stored for this context. */
  saved: Saved;
  client: Omit<ClientOptions, 'frontEnd' | 'user' | 'reason' | 'beforeChange' | 'fetch'> & { fetch: typeof fetch };
}

export interface RunnerOptions {
  act: (action: Action) => void;
  /** Resolves the address and the management token of a context. @throws {Failure} of the command line. */
  connect: (context: string) => Promise<Connected>;
  contexts: () => Promise<readonly ContextSummary[]>;
  terminal: {
    /** @returns false if the text is too long. */
    copy(text: string): Promise<'tmux' | 'terminal' | null>;
    suspend(): void;
    repaint(): void;
  };
  /** Stores a change of the saved views of a daemon. @returns everything that is stored. @throws {Failure} */
  save: (target: Target, change: SavedChange) => Promise<Saved>;
  /** Stores a command for the history of later sessions. */
  remember: (line: string) => void;
  /** Ends the program. */
  quit: (code: number) => void;
}

/** Limits how often progress is reported. */
const PROGRESS_EVERY_MS = 100;

export class Runner {
  readonly #options: RunnerOptions;
  readonly #wakes = new Map<Wake, NodeJS.Timeout>();
  #session: DaemonSession;
  #target: Target;
  /** Changes are stored one after the other. */
  #saving: Promise<void> = Promise.resolve();

  constructor(options: RunnerOptions, connected: Connected) {
    this.#options = options;
    this.#target = connected.target;
    this.#session = new DaemonSession(connected, options);
  }

  run(effect: Effect): void {
    const { act, terminal, remember, quit } = this.#options;
    switch (effect.do) {
      case 'load':
        this.#session.ask(effect.request);
        return;
      case 'change':
        this.#session.change(effect.change, effect.reason);
        return;
      case 'stop':
        this.#session.stop();
        return;
      case 'follow':
        this.#session.streams.set(effect.streams);
        return;
      case 'wake':
        this.#wake(effect.name, effect.afterMs);
        return;
      case 'copy': {
        const text = effect.text instanceof Secret ? effect.text.reveal() : effect.text;
        void terminal.copy(text).then((to) => {
          act(to === null ? { on: 'notCopied', what: effect.what } : { on: 'copied', what: effect.what, to });
        });
        return;
      }
      case 'write':
        void writeSecret(effect.secret, effect.path).then(act);
        return;
      case 'export':
        this.#session.export(effect.list);
        return;
      case 'remember':
        remember(effect.line);
        return;
      case 'save':
        void this.#save(effect.change);
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

  /** Starts no further part of a change. Resolves when the pending changes have completed, or after `ms`. */
  async drainChanges(ms: number): Promise<void> {
    this.#session.stop();
    await Promise.race([this.#session.changesCompleted(), sleep(ms)]);
  }

  /** Stops all requests, streams and timers. */
  end(): void {
    this.#session.end();
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

  #save(change: SavedChange): Promise<void> {
    const target = this.#target;
    const { act, save } = this.#options;
    const isCurrent = () => target === this.#target;
    this.#saving = this.#saving
      .then(() => save(target, change))
      .then(
        (saved) => {
          if (isCurrent()) act({ on: 'saved', saved });
        },
        (error: unknown) => {
          if (isCurrent()) act({ on: 'notSaved', failure: failureFrom(error, target.server) });
        },
      );
    return this.#saving;
  }

  /** Resolves when all changes of the saved views are stored. */
  async saved(): Promise<void> {
    await this.#saving;
  }

  async #connect(context: string): Promise<void> {
    const { act, connect } = this.#options;
    try {
      const connected = await connect(context);
      this.#session.end();
      this.#session = new DaemonSession(connected, this.#options);
      this.#target = connected.target;
      act({ on: 'connected', target: connected.target, saved: connected.saved });
    } catch (error) {
      act({ on: 'notConnected', context, failure: failureFrom(error, context) });
    }
  }
}

/** Session with one daemon. After it has ended, its responses are ignored. */
class DaemonSession {
  readonly streams: StreamFollower;
  readonly #options: Pick<RunnerOptions, 'contexts'>;
  readonly #clientOptions: ClientOptions;
  readonly #client: ManagementClient;
  readonly #act: (action: Action) => void;
  readonly #failureOf: (error: unknown) => RequestFailure;
  readonly #closed = new AbortController();
  /** Requests in flight, which are not sent a second time. */
  readonly #inFlight = new Set<string>();
  #bulk = new AbortController();
  readonly #changes = new Set<Promise<void>>();
  /** IDs of the undos that have not been completed, by the batches that they undo. */
  readonly #undos = new Map<string, string>();
  #progressMs = 0;

  constructor({ target, client }: Connected, options: Pick<RunnerOptions, 'act' | 'contexts'>) {
    this.#options = options;
    // Each request in flight adds a listener; without this Node warns of a leak, on the screen.
    setMaxListeners(0, this.#closed.signal);
    this.#act = (action) => {
      if (!this.#closed.signal.aborted) options.act(action);
    };
    this.#failureOf = (error) => failureFrom(error, target.server);
    const fetch = conditionalFetch({
      fetch: client.fetch,
      onResponse: ({ headers }) => {
        const dateMs = Date.parse(headers.get('date') ?? '');
        this.#act({ on: 'heard', skewMs: Number.isNaN(dateMs) ? null : dateMs - Date.now() });
      },
    });
    this.#clientOptions = {
      ...client,
      fetch,
      frontEnd: 'tui',
      user: reportedUser(),
      ...(target.isReadonly && { beforeChange: refuseChange }),
    };
    this.#client = new ManagementClient(this.#clientOptions);
    this.streams = new StreamFollower({ client: this.#client, act: this.#act, failureOf: this.#failureOf });
  }

  ask(request: DataRequest): void {
    const key = JSON.stringify(request);
    // A secret is masked, so that all of them look the same.
    if (request.of !== 'tokensOfSecret' && this.#inFlight.has(key)) return;
    this.#inFlight.add(key);
    const isLong = request.of === 'allTokens';
    if (isLong) this.#bulk = new AbortController();
    const signal = isLong ? AbortSignal.any([this.#closed.signal, this.#bulk.signal]) : this.#closed.signal;
    const progress = (words: string, done: number, of: number) => {
      this.#progress(words, done, of);
    };
    load({ client: this.#client, contexts: this.#options.contexts, signal, progress }, request)
      .then(
        (answered) => {
          this.#act({ on: 'loaded', ...answered });
        },
        (error: unknown) => {
          if (!signal.aborted) this.#act({ on: 'failed', request, failure: this.#failureOf(error) });
        },
      )
      .finally(() => this.#inFlight.delete(key));
  }

  change(change: ChangeRequest, reason: string | null): void {
    const batch = this.#batchFor(change);
    const client = new ManagementClient({ ...this.#clientOptions, batch, ...(reason !== null && { reason }) });
    const bulk = (this.#bulk = new AbortController());
    const progress = (done: number, of: number) => {
      this.#progress(BULK_WORDS[change.what] ?? 'Changing', done, of);
    };
    const answered = applyChange({ client, signal: bulk.signal, progress, failureOf: this.#failureOf }, change).then(
      (outcome) => {
        if (change.what === 'undo') this.#undos.delete(change.batch);
        this.#act({ on: 'changed', change, outcome: { ...outcome, batch } });
      },
      (error: unknown) => {
        // The operator no longer waits for it.
        if (bulk.signal.aborted && !(error instanceof ApiError)) return;
        this.#act({ on: 'refused', change, failure: this.#failureOf(error) });
      },
    );
    this.#changes.add(answered);
    void answered.finally(() => this.#changes.delete(answered));
  }

  /** An undo whose response was lost is repeated with the same ID: the response then has what was undone before. */
  #batchFor(change: ChangeRequest): string {
    if (change.what !== 'undo') return randomUUID();
    const batch = this.#undos.get(change.batch) ?? randomUUID();
    this.#undos.set(change.batch, batch);
    return batch;
  }

  export(list: ExportedList): void {
    const options = { client: this.#client, signal: this.#closed.signal };
    const exported = exportList(list, options).then(
      ({ count, isCut }) => {
        this.#act({ on: 'exported', list, count, isCut });
      },
      (error: unknown) => {
        const { code, syscall } = error as NodeJS.ErrnoException;
        const why = syscall === undefined ? this.#failureOf(error).message : (code ?? 'failed');
        this.#act({ on: 'notExported', list, why: code === 'EEXIST' ? null : why });
      },
    );
    void exported;
  }

  async changesCompleted(): Promise<void> {
    await Promise.all(this.#changes);
  }

  stop(): void {
    this.#bulk.abort();
  }

  end(): void {
    this.#closed.abort();
    this.#bulk.abort();
    this.streams.end();
  }

  #progress(words: string, done: number, of: number): void {
    const nowMs = performance.now();
    if (nowMs - this.#progressMs < PROGRESS_EVERY_MS) return;
    this.#progressMs = nowMs;
    this.#act({ on: 'progress', words, done, of });
  }
}

/** Second safeguard for read-only contexts, in case a key binding lacks its own check. */
const refuseChange = () =>
  Promise.reject(new Failure(EXIT.refused, 'read-only: nothing was sent', { code: 'context_readonly' }));

/** Writes a secret to a new file that only this user can read. An existing file is not overwritten. @returns the action with the result. */
async function writeSecret(secret: Secret, given: string): Promise<Action> {
  const path = wholePath(given);
  try {
    await writeFile(path, `${secret.reveal()}\n`, { flag: 'wx', mode: 0o600 });
    return { on: 'written', path };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { on: 'notWritten', path, why: code === 'EEXIST' ? 'the file already exists' : (code ?? 'failed') };
  }
}

/** @param server the address to name in messages. */
function failureFrom(error: unknown, server: string): RequestFailure {
  if (error instanceof ApiError) {
    const { status, code, message, retryAfterSeconds } = error;
    const retryAfterMs = retryAfterSeconds === null ? null : retryAfterSeconds * 1_000;
    return {
      kind: 'refused',
      status,
      code,
      message: status === 401 && code !== 'session_ended' ? 'the management token was refused' : message,
      retryAfterMs,
    };
  }
  const { sentence, explanation } = failureOf(error, server);
  // A request refused before it was sent does not mean that the daemon is unreachable.
  const kind = error instanceof Failure ? 'refused' : 'unreachable';
  const { code = 'failed' } = explanation;
  return { kind, status: kind === 'refused' ? 400 : null, code, message: sentence, retryAfterMs: null };
}
