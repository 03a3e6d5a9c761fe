/** Whether the provider can be reached, and has an API where requests go. It is asked without a key: to be refused for that is good. */
import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import {
  type Around,
  clockFinding,
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

const DAY_MS = 86_400_000;
const FEW_DAYS = 14;
/** For each of connecting, TLS and an answer. */
const ANSWER_MS = 4_000;
const DATE_RESOLUTION_MS = 1_000;

export function upstreamFamily(around: Around): Family {
  return { check: 'upstream', look: (signal) => upstream(around, signal) };
}

async function* upstream(around: Around, signal: AbortSignal): AsyncGenerator<Finding> {
  const url = partOf(around, ['upstreamBaseUrl'])?.upstreamBaseUrl;
  if (!url) {
    yield skipped('upstream', WRONG_SETTINGS);
    return;
  }
  const isEncrypted = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (isEncrypted ? 443 : 80));
  const opened: Socket[] = [];
  const letGo = () => {
    opened.at(-1)?.destroy(); // And with it what it stands on: that first would be the end of Node 20.
  };
  signal.addEventListener('abort', letGo);
  try {
    const address = await addressOf(host);
    if (typeof address !== 'string') {
      yield failed('upstream', `${host} does not resolve: ${address.code}`, `getent hosts ${host}`);
      return;
    }
    const beganMs = performance.now();
    const tcp = connect({ host, port });
    opened.push(tcp);
    const refused = await outcomeOf(tcp, 'connect');
    if (refused) {
      yield failed(
        'upstream',
        `no connection to ${host} (${address}) port ${port}: ${refused}`,
        `nc -vz ${host} ${port}`,
      );
      return;
    }
    let socket = tcp;
    if (isEncrypted) {
      // Looked at rather than refused: what is wrong with it is to be told.
      const tls = connectTls({
        socket: tcp,
        rejectUnauthorized: false,
        ...(isIP(host) === 0 && { servername: host }),
        host,
      });
      opened.push(tls);
      const broken = await outcomeOf(tls, 'secureConnect');
      if (broken) {
        yield failed(
          'upstream',
          `${host} port ${port} does not speak TLS: ${broken}`,
          `openssl s_client -connect ${host}:${port}`,
        );
        return;
      }
      const certificate = certificateFinding(tls, `${host}:${port}`);
      yield certificate;
      if (certificate.state === 'failed') return;
      socket = tls;
    }
    const connectedMs = performance.now() - beganMs;
    const askedAtMs = Date.now();
    const answer = await answerOf(socket, url);
    const how = `${url.origin} (${address}) connected in ${Math.round(connectedMs)} ms`;
    if ('failure' in answer) {
      yield failed('upstream', `${how}, and does not answer HTTP: ${answer.failure}`, `curl -sSI ${url.origin}`);
      return;
    }
    if (answer.status === 404) {
      yield failed(
        'upstream',
        `${how}, and answered 404 to GET ${modelsPath(url)}: there is no API at UPSTREAM_BASE_URL`,
        'Compare UPSTREAM_BASE_URL with the base URL in the documentation of the provider, without /v1',
      );
      return;
    }
    yield isEncrypted || isLoopback(address)
      ? ok('upstream', `${how}, answered ${answer.status}`)
      : warning(
          'upstream',
          `${how}, answered ${answer.status}; keys go there in clear text`,
          'Use https in UPSTREAM_BASE_URL',
        );
    const theirsMs = Date.parse(answer.date ?? '');
    if (!Number.isNaN(theirsMs)) {
      yield clockFinding('upstream', theirsMs, [askedAtMs, Date.now()], DATE_RESOLUTION_MS);
    }
  } finally {
    signal.removeEventListener('abort', letGo);
    letGo();
  }
}

const LATE = `no answer within ${ANSWER_MS / 1000} s`;

const isLoopback = (address: string) => address === '::1' || address.startsWith('127.');

async function addressOf(host: string): Promise<string | { code: string }> {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    return { code: codeOf(error) };
  }
}

/** @returns null when it got there, otherwise why not. */
function outcomeOf(socket: Socket, event: 'connect' | 'secureConnect'): Promise<string | null> {
  return new Promise((resolve) => {
    socket.once(event, () => {
      resolve(null);
    });
    socket.on('error', (error) => {
      resolve(codeOf(error));
    });
    socket.once('close', () => {
      resolve('closed');
    });
    socket.setTimeout(ANSWER_MS, () => {
      resolve(LATE);
    });
  });
}

function certificateFinding(socket: TLSSocket, where: string): Finding {
  const check = 'upstream certificate';
  const { valid_to: end } = socket.getPeerCertificate();
  const daysLeft = Math.floor((Date.parse(end) - Date.now()) / DAY_MS);
  const shown = `${socket.getProtocol() ?? 'TLS'}, valid until ${end}`;
  if (!socket.authorized) {
    // Node's types promise an Error, and Node gives a text.
    const why = String(socket.authorizationError);
    return failed(
      check,
      `${shown}; it is not believed: ${why}`,
      `openssl s_client -connect ${where}; an authority of your own goes into NODE_EXTRA_CA_CERTS=FILE`,
    );
  }
  if (daysLeft < FEW_DAYS) return warning(check, `${shown}, ${daysLeft} days`, 'Ask the provider to renew it');
  return ok(check, `${shown}, ${daysLeft} days`);
}

/** Every OpenAI-compatible API has it. */
const modelsPath = (url: URL) => `${url.pathname.replace(/\/+$/, '')}/v1/models`;

type Answer = { status: number; date: string | undefined } | { failure: string };

function answerOf(socket: Socket, url: URL): Promise<Answer> {
  return new Promise((resolve) => {
    const asked = request({
      method: 'GET',
      path: modelsPath(url),
      host: url.hostname,
      headers: { host: url.host, 'user-agent': 'llmp-doctor', connection: 'close' },
      createConnection: () => socket,
    });
    asked.once('response', (response) => {
      response.destroy(); // Its body is not wanted.
      resolve({ status: response.statusCode ?? 0, date: response.headers.date });
    });
    asked.once('error', (error) => {
      resolve({ failure: codeOf(error) });
    });
    asked.setTimeout(ANSWER_MS, () => {
      resolve({ failure: LATE });
    });
    asked.end();
  });
}
