/** Whether the daemon could listen where it is to listen, or does so already. */
import { access, constants, stat } from 'node:fs/promises';
import { request, type RequestOptions } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { ListenAddress } from '../../config/kinds.js';
import {
  type Around,
  codeOf,
  failed,
  type Family,
  type Finding,
  ok,
  partOf,
  skipped,
  warning,
  WRONG_SETTINGS,
} from './doctor-finding.js';

const ANSWER_MS = 3_000;

const PLACES = [
  { name: 'LISTEN_ADDR', key: 'listenAddress', check: 'listening' },
  { name: 'MANAGEMENT_LISTEN_ADDR', key: 'managementListenAddress', check: 'listening, management' },
] as const;

export function listeningFamily(around: Around): Family[] {
  return PLACES.map(({ name, key, check }) => ({
    check,
    look: (signal) => listening(check, name, () => partOf(around, [key]), key, signal),
  }));
}

type Part = { listenAddress?: ListenAddress; managementListenAddress?: ListenAddress | undefined } | null;

async function* listening(
  check: string,
  name: string,
  settings: () => Part,
  key: 'listenAddress' | 'managementListenAddress',
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const part = settings();
  const address = part?.[key];
  if (address) yield await findingOf(check, name, address, signal);
  else if (!part) yield skipped(check, WRONG_SETTINGS);
}

async function findingOf(check: string, name: string, address: ListenAddress, signal: AbortSignal): Promise<Finding> {
  const shown = shownAs(address);
  if ('port' in address && address.port === 0) return ok(check, 'any free port');
  const refusal = await connectionTo(address, signal);
  if (refusal === null) return held(check, name, address, signal);
  if ('path' in address) return freeSocket(check, address.path, refusal);
  const why = await bindingProblem(address);
  if (why === null) return ok(check, `${shown} is free`);
  const advice: Partial<Record<string, string>> = {
    EACCES: `Take a port above 1023 for ${name}, or under systemd AmbientCapabilities=CAP_NET_BIND_SERVICE`,
    EADDRNOTAVAIL: `This machine does not have that address (ip address); change ${name}`,
  };
  return failed(check, `${shown}: ${why}`, advice[why] ?? `ss -ltnp 'sport = :${address.port}'`);
}

/** Somebody answers there: it had better be us. */
async function held(check: string, name: string, address: ListenAddress, signal: AbortSignal): Promise<Finding> {
  const shown = shownAs(address);
  const answer = await ready(address, signal);
  if (answer === null) {
    const advice = 'port' in address ? `ss -ltnp 'sport = :${address.port}'` : `ss -lxp src ${address.path}`;
    return failed(check, `${shown} is held by another program`, `${advice}; or change ${name}`);
  }
  if (answer.status === 200) return ok(check, `${shown} is held by a running llmp, which is ready`);
  const missing = answer.missing.join(', ') || 'unknown';
  return warning(check, `${shown} is held by a running llmp, which is not ready: ${missing}`, 'llmp status');
}

async function freeSocket(check: string, path: string, refusal: string): Promise<Finding> {
  const folder = dirname(path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    if (refusal === 'ENOENT') return ok(check, `unix:${path} is free`);
    if (refusal === 'ECONNREFUSED' && (await stat(path)).isSocket()) {
      return ok(check, `unix:${path} is left over from a daemon before; the next one takes it`);
    }
    return failed(check, `unix:${path} is in the way: ${refusal}`, `ls -l ${path}`);
  } catch (error) {
    return failed(check, `no socket can be made in ${folder}: ${codeOf(error)}`, `ls -ld ${folder}`);
  }
}

/** Where to ask for what listens on all addresses. */
const reachable = (host: string) => (host === '::' ? '::1' : host === '0.0.0.0' ? '127.0.0.1' : host);

const targetOf = (address: ListenAddress) =>
  'path' in address ? { path: address.path } : { host: reachable(address.host), port: address.port };

/** @returns null when somebody takes it, otherwise why not. */
function connectionTo(address: ListenAddress, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ ...targetOf(address), timeout: ANSWER_MS, signal });
    const settle = (outcome: string | null) => {
      socket.destroy();
      resolve(outcome);
    };
    socket.once('connect', () => {
      settle(null);
    });
    socket.once('timeout', () => {
      settle('ETIMEDOUT');
    });
    socket.on('error', (error) => {
      settle(codeOf(error));
    });
  });
}

/** Listens for an instant; nobody listened there a moment ago. */
function bindingProblem(address: { host: string; port: number }): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => {
      resolve(codeOf(error));
    });
    server.listen({ ...address, exclusive: true }, () => {
      server.close(() => {
        resolve(null);
      });
    });
  });
}

interface Ready {
  status: number;
  missing: string[];
}

/** What `/ready` says; null for whoever is not llmp. */
function ready(address: ListenAddress, signal: AbortSignal): Promise<Ready | null> {
  const target: RequestOptions =
    'path' in address
      ? { socketPath: address.path, path: '/ready' }
      : { host: reachable(address.host), port: address.port, path: '/ready' };
  return new Promise((resolve) => {
    const asked = request({ ...target, agent: false, signal, timeout: ANSWER_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (text.length > MOST_TEXT) asked.destroy();
      });
      response.once('end', () => {
        resolve(readyIn(response.statusCode ?? 0, text));
      });
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => {
      resolve(null);
    });
    asked.once('close', () => {
      resolve(null);
    });
    asked.end();
  });
}

const MOST_TEXT = 10_000;

function readyIn(status: number, text: string): Ready | null {
  if (status !== 200 && status !== 503) return null;
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null || !('missing' in body) || !Array.isArray(body.missing)) return null;
    return { status, missing: body.missing.map(String) };
  } catch {
    return null;
  }
}

function shownAs(address: ListenAddress): string {
  if ('path' in address) return `unix:${address.path}`;
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}
