/** Doctor checks of the listen addresses: whether the daemon can listen on them, or already does. */
import { access, constants, stat } from 'node:fs/promises';
import { request, type RequestOptions } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { ListenAddress } from '../../config/kinds.js';
import {
  type DoctorContext,
  checksWith,
  codeOf,
  failed,
  type CheckGroup,
  type Finding,
  ok,
  warning,
} from './doctor-finding.js';

const RESPONSE_MS = 3_000;

const LISTENERS = [
  { name: 'LISTEN_ADDR', key: 'listenAddress', check: 'listening' },
  { name: 'MANAGEMENT_LISTEN_ADDR', key: 'managementListenAddress', check: 'listening, management' },
] as const;

export const listeningChecks = (context: DoctorContext): CheckGroup[] =>
  LISTENERS.map(({ name, key, check }) =>
    checksWith<typeof key>(check, context, [key], async function* ({ [key]: address }, signal) {
      if (address) yield await findingOf(check, name, address, signal);
    }),
  );

async function findingOf(check: string, name: string, address: ListenAddress, signal: AbortSignal): Promise<Finding> {
  const shown = shownAs(address);
  if ('port' in address && address.port === 0) return ok(check, 'port 0: the system chooses a free port');
  const refusal = await connectionTo(address, signal);
  if (refusal === null) return inUseFinding(check, name, address, signal);
  if ('path' in address) return socketFinding(check, address.path, refusal);
  const why = await bindingProblem(address);
  if (why === null) return ok(check, `${shown} is free`);
  const advice: Partial<Record<string, string>> = {
    EACCES: `Use a port above 1023 for ${name}, or set AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit of systemd`,
    EADDRNOTAVAIL: `Set ${name} to an address of this machine: ip address`,
  };
  return failed(
    check,
    `cannot listen on ${shown}: ${why}`,
    advice[why] ?? `Find the program: ss -ltnp 'sport = :${address.port}'`,
  );
}

/** The address accepts connections: checks whether it is llmp that does. */
async function inUseFinding(
  check: string,
  name: string,
  address: ListenAddress,
  signal: AbortSignal,
): Promise<Finding> {
  const shown = shownAs(address);
  const answer = await askReady(address, signal);
  if (answer === null) {
    const advice = 'port' in address ? `ss -ltnp 'sport = :${address.port}'` : `ss -lxp src ${address.path}`;
    return failed(
      check,
      `${shown} is in use by another program`,
      `Stop that program, or change ${name}. Find it with: ${advice}`,
    );
  }
  if (answer.status === 200) return ok(check, `${shown} is in use by a running llmp, which is ready`);
  const missing = answer.missing.join(', ') || 'unknown';
  return warning(
    check,
    `${shown} is in use by a running llmp, which is not ready: ${missing}`,
    'See the details: llmp status',
  );
}

async function socketFinding(check: string, path: string, refusal: string): Promise<Finding> {
  const folder = dirname(path);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    if (refusal === 'ENOENT') return ok(check, `unix:${path} is free`);
    if (refusal === 'ECONNREFUSED' && (await stat(path)).isSocket()) {
      return ok(check, `unix:${path} was left behind by a stopped daemon; the next start replaces it`);
    }
    return failed(
      check,
      `unix:${path} exists and is not a usable socket: ${refusal}`,
      `Move it, or listen on another path. Check with: ls -l ${path}`,
    );
  } catch (error) {
    return failed(
      check,
      `cannot create a socket in ${folder}: ${codeOf(error)}`,
      `Create the folder, or grant write permission. Check with: ls -ld ${folder}`,
    );
  }
}

/** The address to connect to; for a listener on all addresses, the loopback address. */
const reachable = (host: string) => (host === '::' ? '::1' : host === '0.0.0.0' ? '127.0.0.1' : host);

const targetOf = (address: ListenAddress) =>
  'path' in address ? { path: address.path } : { host: reachable(address.host), port: address.port };

/** @returns null if the connection is accepted, otherwise the reason. */
function connectionTo(address: ListenAddress, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ ...targetOf(address), timeout: RESPONSE_MS, signal });
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

/** Listens for a moment on an address that does not accept connections. @returns null if that works, otherwise the reason. */
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

/** The response of `/ready`; null if the other program is not llmp. */
function askReady(address: ListenAddress, signal: AbortSignal): Promise<Ready | null> {
  const target: RequestOptions =
    'path' in address
      ? { socketPath: address.path, path: '/ready' }
      : { host: reachable(address.host), port: address.port, path: '/ready' };
  return new Promise((resolve) => {
    const asked = request({ ...target, agent: false, signal, timeout: RESPONSE_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (text.length > MAX_TEXT) asked.destroy();
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

const MAX_TEXT = 10_000;

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
