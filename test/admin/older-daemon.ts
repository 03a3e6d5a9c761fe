/** The Admin UI in a process of its own, in front of a daemon of an older release: paths and fields that it does not know. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { loadSettings } from '../../config/settings.js';
import { adminUi } from '../../daemon/admin/mount.js';
import { createApp } from '../../daemon/http/server/app.js';
import { createLog } from '../../daemon/process/log.js';
import { MANAGEMENT_TOKEN, type TestDaemon } from '../support/daemon.js';

export interface OlderRelease {
  /** Paths that get 404. */
  unknownPath?: RegExp;
  /** Fields of request bodies and parameters of queries that get 400. */
  unknownFields?: readonly string[];
  /** Whether its responses lack a field, at any depth. */
  lacks?: (field: string) => boolean;
}

export interface AdminBefore {
  url: string;
  stop(): Promise<void>;
}

export async function startAdminBefore(daemon: TestDaemon, release: OlderRelease): Promise<AdminBefore> {
  const { settings, reloadable } = loadSettings({
    MANAGEMENT_TOKEN,
    DATABASE_URL: daemon.databasePath,
    UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
  });
  const lines: string[] = [];
  const stream = new Writable({
    write(line: Buffer, _encoding, done) {
      lines.push(line.toString());
      done();
    },
  });
  const log = createLog({ level: 'error', format: 'json', secrets: [], stream });
  const admin = adminUi({
    ...settings,
    server: daemon.managementUrl,
    fetch: olderFetch(release),
    proxyLocation: { url: daemon.url },
    clock: daemon.clock,
    live: { current: reloadable },
    log,
  });
  const parts = { log, probes: null, manage: null, admin, metrics: null, unknownPathErrors: null };
  const server = createServer(createApp(parts));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      admin.endStreams();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      if (lines.length > 0) throw new Error(`the Admin UI logged errors: ${lines.join('')}`);
    },
  };
}

const problem = (status: number, code: string, error: string) => Response.json({ error, code }, { status });

const olderFetch = ({ unknownPath, unknownFields = [], lacks }: OlderRelease): typeof fetch =>
  (async (input: URL, init: RequestInit) => {
    const { pathname, searchParams } = new URL(input);
    if (unknownPath?.test(pathname)) return problem(404, 'not_found', 'not found');
    const body = typeof init.body === 'string' ? (JSON.parse(init.body) as object) : {};
    const unknown = unknownFields.find((field) => field in body || searchParams.has(field));
    if (unknown !== undefined) return problem(400, 'invalid_request', `unknown field ${unknown}`);
    const response = await fetch(input, init);
    const type = response.headers.get('content-type') ?? '';
    if (!lacks || response.body === null) return response;
    if (type.startsWith('text/event-stream')) {
      const body = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(eventsWithout(lacks));
      return new Response(body.pipeThrough(new TextEncoderStream()), { headers: { 'content-type': type } });
    }
    const { status } = response;
    return Response.json(without(await response.json(), lacks), { status, headers: headersOf(response) });
  }) as typeof fetch;

/** Each event is a line of JSON, and other lines stay as they are. */
function eventsWithout(lacks: (field: string) => boolean): TransformStream<string, string> {
  let rest = '';
  return new TransformStream({
    transform(chunk, controller) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const json = line.startsWith('data: {') ? JSON.stringify(without(JSON.parse(line.slice(6)), lacks)) : null;
        controller.enqueue(json === null ? `${line}\n` : `data: ${json}\n`);
      }
    },
  });
}

/** The headers of lists. */
const headersOf = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name === 'link' || name === 'x-total-count'));

function without(it: unknown, lacks: (field: string) => boolean): unknown {
  if (Array.isArray(it)) return it.map((item) => without(item, lacks));
  if (typeof it !== 'object' || it === null) return it;
  const rest = Object.entries(it).filter(([name]) => !lacks(name));
  return Object.fromEntries(rest.map(([name, value]) => [name, without(value, lacks)]));
}
