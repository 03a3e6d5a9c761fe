/**
 * A daemon with several workers that are not processes: the primary and all workers run here, on the clock of the test. Everything else is as with
 * WORKERS above 1: each worker has its own connection to the database, admission, caches and HTTP server, and messages are copied as between processes.
 * Connections are spread in turn; but if there are caches in memory, which belong to their workers, one worker gets all of a daemon's connections.
 * `LLMP_TEST_WORKERS` makes `startDaemon` use it.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { type Loaded, loadSettings, textsOf } from '../../config/settings.js';
import { type ComposeOptions, type Daemon, startDaemon } from '../../daemon/compose.js';
import { listen } from '../../daemon/process/listen.js';
import type { AdjustableLog } from '../../daemon/process/log.js';
import type { StartedWorker, WorkerProcessesOptions } from '../../daemon/process/worker-processes.js';
import type { Port } from '../../daemon/store/ipc/channel.js';
import { PrimaryLink } from '../../daemon/store/ipc/primary-link.js';
import { runWorker } from '../../daemon/worker/run.js';

/** What is said of the real number of connections is counted by the server that accepted them. */
type CountingServer = Server & { _connections: number };
type AcceptedSocket = Socket & { _server: CountingServer };

/** The two ends of a channel. */
function ports(): [Port, Port] {
  const listeners: ((batch: unknown) => void)[][] = [[], []];
  const port = (own: number): Port => ({
    post(batch, onTaken) {
      const copy: unknown = structuredClone(batch);
      setImmediate(() => {
        for (const listener of listeners[1 - own] ?? []) listener(copy);
        onTaken?.();
      });
    },
    onBatch: (listener) => listeners[own]?.push(listener),
  });
  return [port(0), port(1)];
}

/** Events that a test listens to on the server which gets the requests. */
const REGISTERING = new Set(['on', 'once', 'off', 'prependListener', 'addListener', 'removeListener']);
/** What the server that listens knows. */
const OF_LISTENER = new Set(['address', 'listening', 'close']);

let started = 0;

/** @param loaded the settings, with WORKERS above 1. */
export async function startWithWorkers(loaded: Loaded, options: ComposeOptions): Promise<Daemon> {
  const { onEnded, ...shared } = options;
  const daemons: Daemon[] = [];
  // As the HTTP server accepts them.
  const listener = createServer({ allowHalfOpen: true, noDelay: true }) as CountingServer;
  const { httpCacheEnabled, httpCacheBackend } = loaded.settings;
  const isSpread = !httpCacheEnabled || httpCacheBackend !== 'memory';
  let turn = started++;
  listener.on('connection', (socket: AcceptedSocket) => {
    const serving = daemons.map(({ server }) => server).filter(({ listening }) => listening);
    const server = serving[turn % serving.length] as CountingServer | undefined;
    if (isSpread) turn += 1;
    if (!server) {
      socket.destroy();
      return;
    }
    listener._connections -= 1;
    server._connections += 1;
    socket._server = server;
    server.emit('connection', socket);
  });

  const start = ({ count, clock, onStarted }: WorkerProcessesOptions) => {
    const ended: Promise<unknown>[] = [];
    const begin = (number: number) => {
      const [ours, theirs] = ports();
      const link = new PrimaryLink(theirs);
      const worker = new Promise<void>((resolve) => {
        link.channel.handle('begin', (briefing) => {
          const { listenAddress } = loadSettings(briefing.texts).settings;
          // Each listens on an address of its own, which nobody uses.
          const texts = { ...briefing.texts, LISTEN_ADDR: '127.0.0.1:0' };
          const run = async () => {
            if (number === 1) await listen(listener, listenAddress);
            await runWorker(
              link,
              { ...briefing, texts },
              {
                ...shared,
                createLog: () => options.log as AdjustableLog,
                ...(onEnded && { onEnded }),
                onListening(daemon) {
                  daemons.push(daemon);
                  // The test applies settings itself.
                  link.channel.handle('reload', () => undefined);
                },
              },
            );
          };
          void run().then(resolve);
        });
      });
      ended.push(worker);
      const started: StartedWorker = {
        ...ours,
        number,
        pid: process.pid,
        startedAtMs: clock.now(),
        kill() {
          throw new Error('a worker in this process cannot be killed');
        },
        ended: worker,
      };
      onStarted(started);
      link.channel.begin();
    };
    return {
      begin() {
        for (let number = 1; number <= count; number++) begin(number);
      },
      stopReplacing: () => undefined,
      async end() {
        await Promise.all(ended);
      },
      failed: new Promise<never>(() => undefined),
    };
  };
  const primary = await startDaemon({
    ...shared,
    workers: { texts: () => textsOf(loaded), isLogInJournal: false, execArgv: [], start },
  });
  return together(primary, daemons, listener);
}

/** The daemon that they are together, as far as tests look into it. */
function together(primary: Daemon, workers: readonly Daemon[], listener: Server): Daemon {
  const server = new Proxy(listener, {
    get(target, name) {
      const text = String(name);
      if (text === 'getConnections')
        return (done: (error: null, count: number) => void) => {
          done(
            null,
            workers.reduce((sum, each) => sum + (each.server as Server as CountingServer)._connections, 0),
          );
        };
      if (OF_LISTENER.has(text)) return bound(target, name);
      if (!REGISTERING.has(text)) return Reflect.get(workers[0]?.server ?? target, name) as unknown;
      return (...args: unknown[]) => {
        for (const each of workers)
          (Reflect.get(each.server, name) as (...args: unknown[]) => void).apply(each.server, args);
        return server;
      };
    },
  }) as Daemon['server'];
  const sizeOf = (name: keyof Daemon['admission']['size']) => () =>
    workers.reduce((sum, { admission }) => sum + admission.size[name], 0);
  const admission: Daemon['admission'] = overlaid(primary.admission, {
    size: () => ({
      accounts: sizeOf('accounts')(),
      missing: sizeOf('missing')(),
      inFlight: sizeOf('inFlight')(),
      leases: sizeOf('leases')(),
      leasedUnits: sizeOf('leasedUnits')(),
    }),
    readBetweenTicks:
      () =>
      async <T>(read: () => Promise<T>) => {
        await Promise.all(workers.map((each) => each.admission.readBetweenTicks(() => Promise.resolve())));
        await primary.status(); // The workers hand over their records.
        return primary.admission.readBetweenTicks(read);
      },
  });
  return {
    ...primary,
    server,
    admission,
    scheduler: overlaid(primary.scheduler, {
      publishAll: () => () => {
        for (const each of workers) each.scheduler.publishAll();
      },
    }),
    usage: overlaid(primary.usage, {
      flush: () => async () => {
        await primary.status(); // The workers hand over their records.
        await primary.usage.flush();
      },
    }),
    apply(next, files) {
      primary.apply(next, files);
      for (const each of workers) each.apply(next, files);
    },
    async stop() {
      await primary.stop();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

const bound = (target: object, name: string | symbol): unknown => {
  const value: unknown = Reflect.get(target, name);
  return typeof value === 'function' ? (value.bind(target) as unknown) : value;
};

/** An object with some of its properties replaced. @param replaced gives the value of each. */
function overlaid<T extends object>(target: T, replaced: { [Name in keyof T]?: () => T[Name] }): T {
  return new Proxy(target, {
    get: (_, name) => (name in replaced ? replaced[name as keyof T]?.() : bound(target, name)),
    set: (_, name, value) => Reflect.set(target, name, value),
  });
}
