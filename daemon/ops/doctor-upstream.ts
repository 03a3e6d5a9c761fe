/** Doctor checks of the provider: whether it is reachable, and has an API at UPSTREAM_BASE_URL. They send no key, so a refusal is a good result. */
import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { AllSettings } from '../../config/settings.js';
import { isReachedDirectly } from '../../config/urls.js';
import { type Opening, type TunnelTarget, tunnelsThrough } from '../http/proxy/upstream-tunnel.js';
import {
  type DoctorContext,
  checksWith,
  clockFinding,
  codeOf,
  failed,
  type CheckGroup,
  type Finding,
  ok,
  warning,
} from './doctor-finding.js';

const DAY_MS = 86_400_000;
const WARN_BELOW_DAYS = 14;
/** Limit for each of these: the connection, the TLS handshake, and the response. */
const RESPONSE_MS = 4_000;
const DATE_RESOLUTION_MS = 1_000;

const NEEDED = ['upstreamBaseUrl', 'upstreamProxy', 'upstreamProxyBypass'] as const;

export const upstreamChecks = (context: DoctorContext): CheckGroup =>
  checksWith('upstream', context, NEEDED, (settings, signal) => upstream(settings, context, signal));

async function* upstream(
  { upstreamBaseUrl: url, upstreamProxy, upstreamProxyBypass: bypass = [] }: Pick<AllSettings, (typeof NEEDED)[number]>,
  context: DoctorContext,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const isEncrypted = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (isEncrypted ? 443 : 80));
  const opened: Opening[] = [];
  const closeConnection = () => {
    opened.at(-1)?.destroy(); // Also destroys the sockets below it. Destroying those first crashes Node 20.
  };
  signal.addEventListener('abort', closeConnection);
  try {
    const beganMs = performance.now();
    const connected =
      upstreamProxy && !isReachedDirectly(url, bypass)
        ? await connectedThrough(upstreamProxy, { host, port }, opened)
        : await connectedTo(host, port, context, opened);
    if ('state' in connected) {
      yield connected;
      return;
    }
    const { socket: tcp, place } = connected;
    let socket = tcp;
    if (isEncrypted) {
      // An invalid certificate is accepted here, so that the finding can say what is wrong with it.
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
          `TLS handshake with ${host} port ${port} failed: ${broken}`,
          `Test TLS: openssl s_client -connect ${host}:${port}`,
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
    const response = await responseOf(socket, url);
    const how = `${url.origin} (${place}) connected in ${Math.round(connectedMs)} ms`;
    if ('failure' in response) {
      yield failed(
        'upstream',
        `${how}, but sent no HTTP response: ${response.failure}`,
        `Test HTTP: curl -sSI ${url.origin}`,
      );
      return;
    }
    if (response.status === 404) {
      yield failed(
        'upstream',
        `${how}, but responded with 404 to GET ${modelsPath(url)}: no API found at UPSTREAM_BASE_URL`,
        'Set UPSTREAM_BASE_URL to the base URL in the documentation of the provider, without /v1',
      );
      return;
    }
    yield isEncrypted || isLoopback(place)
      ? ok('upstream', `${how}, responded with ${response.status}`)
      : warning(
          'upstream',
          `${how}, responded with ${response.status}; upstream keys are sent unencrypted`,
          'Use https in UPSTREAM_BASE_URL',
        );
    const theirsMs = Date.parse(response.date ?? '');
    if (!Number.isNaN(theirsMs)) {
      yield clockFinding('upstream', theirsMs, [askedAtMs, Date.now()], DATE_RESOLUTION_MS);
    }
  } finally {
    signal.removeEventListener('abort', closeConnection);
    closeConnection();
  }
}

/** A connection to the provider, and where it leads: an address, or the proxy. */
type Connected = { socket: Socket; place: string };

async function connectedTo(
  host: string,
  port: number,
  { isSetUp, envFileOption }: DoctorContext,
  opened: Opening[],
): Promise<Connected | Finding> {
  const address = await addressOf(host);
  if (typeof address !== 'string') {
    const evidence = `cannot resolve ${host}: ${address.code}`;
    const advice = `Check UPSTREAM_BASE_URL and DNS: getent hosts ${host}`;
    if (!isSetUp) return failed('upstream', evidence, advice);
    return warning(
      'upstream',
      `${evidence}; requests get 502 until it resolves`,
      `${advice}. Then: llmp doctor${envFileOption}`,
    );
  }
  const socket = connect({ host, port });
  opened.push(socket);
  const refused = await outcomeOf(socket, 'connect');
  if (refused === null) return { socket, place: address };
  return failed(
    'upstream',
    `cannot connect to ${host} (${address}) port ${port}: ${refused}`,
    `Test the connection: nc -vz ${host} ${port}`,
  );
}

/** The proxy resolves the name. */
function connectedThrough(proxy: URL, target: TunnelTarget, opened: Opening[]): Promise<Connected | Finding> {
  return new Promise((resolve) => {
    const opening = tunnelsThrough(proxy)(target, (error, socket) => {
      clearTimeout(timer);
      if (socket) {
        opened.push(socket);
        resolve({ socket, place: `through the proxy ${proxy.host}` });
        return;
      }
      resolve(
        failed('upstream', error.message, `Check UPSTREAM_PROXY: curl -sSI -x http://${proxy.host} ${target.host}`),
      );
    });
    const timer = setTimeout(() => opening.destroy(new Error(TIMED_OUT)), RESPONSE_MS);
    opened.push(opening);
  });
}

const TIMED_OUT = `no response within ${RESPONSE_MS / 1000} s`;

const isLoopback = (address: string) => address === '::1' || address.startsWith('127.');

async function addressOf(host: string): Promise<string | { code: string }> {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    return { code: codeOf(error) };
  }
}

/** @returns null if the event occurred, otherwise the reason. */
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
    socket.setTimeout(RESPONSE_MS, () => {
      resolve(TIMED_OUT);
    });
  });
}

function certificateFinding(socket: TLSSocket, where: string): Finding {
  const check = 'upstream certificate';
  const { valid_to: end } = socket.getPeerCertificate();
  const daysLeft = Math.floor((Date.parse(end) - Date.now()) / DAY_MS);
  const shown = `${socket.getProtocol() ?? 'TLS'}, valid until ${end}`;
  if (!socket.authorized) {
    // A string in Node, although its types declare an Error.
    const why = String(socket.authorizationError);
    return failed(
      check,
      `${shown}; it is not trusted: ${why}`,
      `For a private certificate authority set NODE_EXTRA_CA_CERTS=FILE. See the certificate: openssl s_client -connect ${where}`,
    );
  }
  if (daysLeft < WARN_BELOW_DAYS)
    return warning(check, `${shown}, ${daysLeft} days left`, 'Ask the provider to renew it');
  return ok(check, `${shown}, ${daysLeft} days left`);
}

/** Every OpenAI-compatible API has this path. */
const modelsPath = (url: URL) => `${url.pathname.replace(/\/+$/, '')}/v1/models`;

type ProbeResponse = { status: number; date: string | undefined } | { failure: string };

function responseOf(socket: Socket, url: URL): Promise<ProbeResponse> {
  return new Promise((resolve) => {
    const asked = request({
      method: 'GET',
      path: modelsPath(url),
      host: url.hostname,
      headers: { host: url.host, 'user-agent': 'llmp-doctor', connection: 'close' },
      createConnection: () => socket,
    });
    asked.once('response', (response) => {
      response.destroy(); // The body is not needed.
      resolve({ status: response.statusCode ?? 0, date: response.headers.date });
    });
    asked.once('error', (error) => {
      resolve({ failure: codeOf(error) });
    });
    asked.setTimeout(RESPONSE_MS, () => {
      resolve({ failure: TIMED_OUT });
    });
    asked.end();
  });
}
