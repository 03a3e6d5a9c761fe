/** Who sends a request: the credential that it presents, the ID that it has, and the address of its client. */
import { createHash, randomFillSync, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, type Socket } from 'node:net';
import type { Network } from '../../config/urls.js';
import { holdsSecret } from '../core/masking.js';
import { percentDecodedForms } from '../core/percent.js';
import { credentialInTarget, Refusal } from '../core/refusal.js';
import { digestOf, isWellFormedSecret, SECRET_LENGTH, SECRET_PREFIX } from '../core/token.js';
import { holdsToken } from '../core/token-in-text.js';
import type { RequestFields } from './request-head.js';

/** The credential of `Authorization: Bearer <credential>`. The scheme may be in any letter case and is followed by exactly one space. */
export function bearerOf(authorization: string | undefined): string | null {
  return (authorization !== undefined && /^bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1]) || null;
}

export interface PresentedToken {
  secret: string;
  digest: string;
}

/**
 * The credential of a request on /v1: the withering token in any of its carriers, or, if there is none, any credential, which admission
 * refuses. Some clients send a token in one carrier and something else in another.
 *
 * @param others values of the carriers other than `Authorization`; null if there are none.
 * @throws {Refusal} `malformed_request` for two different tokens: another server might choose the other one.
 */
export function credentialOf(authorization: string | undefined, others: readonly string[] | null): string | null {
  const bearer = bearerOf(authorization);
  if (others === null) return bearer;
  const presented = bearer === null ? others : [bearer, ...others];
  const [token, ...more] = presented.filter(isWellFormedSecret);
  if (more.some((other) => other !== token)) {
    throw new Refusal('malformed_request', 'the request has two different tokens');
  }
  return token ?? presented[0] ?? null;
}

// The token of a connection's last request. Most clients send the same one again, and a digest takes a twentieth of a request's time.
const lastPresented = new WeakMap<Socket, PresentedToken & { text: string; isBearer: boolean }>();

/**
 * @returns the secret that the request presents, with its digest, which is cached as long as the connection's requests present the same.
 * @throws {Refusal} as `credentialOf` does.
 */
export function presentedTokenIn(
  { authorization, otherCredentials }: Pick<RequestFields, 'authorization' | 'otherCredentials'>,
  socket: Socket,
): PresentedToken | null {
  const isBearer = authorization !== undefined;
  const text = otherCredentials === null ? authorization : isBearer ? undefined : otherCredentials[0];
  const isOnly = text !== undefined && (isBearer || otherCredentials?.length === 1);
  const last = isOnly ? lastPresented.get(socket) : undefined;
  if (last && isOnly && last.isBearer === isBearer && isSame(last.text, text)) return last;
  const secret = credentialOf(authorization, otherCredentials);
  if (secret === null) return null;
  const digest = digestOf(secret);
  if (!isOnly) return { secret, digest };
  const presented = { text, isBearer, secret, digest };
  if (secret.length === SECRET_LENGTH) lastPresented.set(socket, presented);
  return presented;
}

/** Compares in constant time: a proxy in front may send requests of several clients on one connection. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

export interface Subprotocols {
  /** The token, which a browser's WebSocket can send only here: it cannot set `Authorization`. */
  credential: string | null;
  /** The subprotocols to offer to the upstream. */
  offered: string[];
}

const KEY_PARAMETER = 'key=';
/** What Google's clients send as `?key=` or in this header. */
const KEY_HEADER = 'X-Goog-Api-Key';

/**
 * For `QUERY_KEY=accept`: turns a `?key=` that is a withering token into the header in which Google's clients send the same, so that the
 * target has no credential from here on. Any other spelling stays in the target: it is refused there (`checkNoCredentialIn`), as is a
 * second one. A request with another value in the header has the header twice, and is refused for that.
 */
export function takeKeyFromQuery(req: Pick<IncomingMessage, 'url' | 'rawHeaders' | 'headers'>): void {
  const { url = '' } = req;
  const query = url.indexOf('?');
  if (query === -1 || !url.includes(KEY_PARAMETER + SECRET_PREFIX, query)) return;
  const parameters = url.slice(query + 1).split('&');
  const at = parameters.findIndex(
    (parameter) => parameter.startsWith(KEY_PARAMETER) && isWellFormedSecret(parameter.slice(KEY_PARAMETER.length)),
  );
  if (at === -1) return;
  const [parameter = ''] = parameters.splice(at, 1);
  const rest = parameters.join('&');
  req.url = url.slice(0, query) + (rest === '' ? '' : `?${rest}`);
  // A copy: a slice would hold the whole target in memory as long as its connection.
  const secret = Buffer.from(parameter.slice(KEY_PARAMETER.length), 'latin1').toString('latin1');
  const { headers } = req;
  const header = KEY_HEADER.toLowerCase();
  if (headers[header] === secret) return;
  req.rawHeaders.push(KEY_HEADER, secret);
  headers[header] ??= secret;
}

/** Query parameters in which APIs accept a credential, in lower case. */
const CREDENTIAL_PARAMETERS: ReadonlySet<string> = new Set([
  'key',
  'api_key',
  'api-key',
  'apikey',
  'access_token',
  'subscription-key',
  'x-api-key',
  'x-goog-api-key',
]);

/**
 * Refuses a request whose target contains a withering token, or any value in a parameter meant for credentials, even if a valid token is
 * in its header. The target is forwarded byte for byte, and many servers on the way log it.
 *
 * @throws {Refusal}
 */
export function checkNoCredentialIn(target: string): void {
  const query = target.indexOf('?');
  if (holdsToken(target) || (query !== -1 && holdsCredential(target.slice(query + 1)))) throw credentialInTarget();
}

/** A parameter without a value, as in `?key=`, is not a credential. */
const holdsCredential = (query: string): boolean =>
  query.split(/[&;]/).some((parameter) => {
    const equals = parameter.indexOf('=');
    if (equals === -1 || equals === parameter.length - 1) return false;
    return percentDecodedForms(parameter.slice(0, equals)).some((name) =>
      CREDENTIAL_PARAMETERS.has(name.toLowerCase()),
    );
  });

const CREDENTIAL_PREFIX = 'openai-insecure-api-key.';
// As for the headers of these names: the project decides who pays.
const NOT_FORWARDED_PREFIXES = ['openai-organization.', 'openai-project.'];

/** Parses `Sec-WebSocket-Protocol` of a WebSocket handshake. */
export function subprotocolsOf(field: string | undefined): Subprotocols {
  const names = (field ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const begins = (beginning: string) => (name: string) => name.toLowerCase().startsWith(beginning);
  const credentials = names.filter(begins(CREDENTIAL_PREFIX));
  return {
    // With two credentials, another server might choose the other one.
    credential: credentials.length === 1 ? credentials.join().slice(CREDENTIAL_PREFIX.length) : null,
    offered: names.filter(
      (name) => ![CREDENTIAL_PREFIX, ...NOT_FORWARDED_PREFIXES].some((it) => begins(it)(name)) && !holdsToken(name),
    ),
  };
}

const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** @returns a test in constant time whether a presented value equals `expected`. */
export function constantTimeMatcher(expected: string): (presented: string) => boolean {
  const digest = sha256(expected);
  // Both values are hashed first: timingSafeEqual requires equal lengths, and a length check would reveal the length of the credential.
  return (presented) => timingSafeEqual(sha256(presented), digest);
}

const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The client's request ID if it is harmless in a log, else a new one. */
export function requestIdOf(presented: string | string[] | undefined): string {
  // The ID is stored and logged, so a value that contains a secret is not accepted.
  const isFit = typeof presented === 'string' && REQUEST_ID.test(presented) && !holdsSecret(presented);
  return isFit ? presented : newRequestId();
}

const ID_BYTES = 16;
const randomBytes = Buffer.alloc(256 * ID_BYTES);
let used = randomBytes.length;

/** As random as a UUID, but faster: Node builds a UUID from twenty strings. */
function newRequestId(): string {
  if (used === randomBytes.length) {
    randomFillSync(randomBytes);
    used = 0;
  }
  used += ID_BYTES;
  return randomBytes.toString('hex', used - ID_BYTES, used);
}

// ---- the address

/**
 * The address of a request's client. Behind a proxy it is not the socket's peer but in `X-Forwarded-For`. Any client can send that
 * header, so it is used only if the peer is in `TRUSTED_PROXIES`. Each proxy appends the address of its own peer. Read from the end, the
 * first address that is not a trusted proxy is the client, whatever the client wrote in front of it.
 *
 * @param forwardedFor the value of `X-Forwarded-For`; several headers are joined, since they are one list.
 * @returns null if there is no address, as on a Unix socket.
 */
export type AddressOf = (socket: Socket, forwardedFor: string | undefined) => string | null;

// Otherwise a client in a trusted network could send a list that takes long to read.
const MAX_HOPS = 32;

export function addressesBehind(proxies: readonly Network[] | undefined): AddressOf {
  if (!proxies) return peerOf;
  const isTrusted = membershipTest(proxies);
  return (socket, forwardedFor) => {
    const peer = peerOf(socket);
    const believes = isTrustedPeer(socket, isTrusted);
    return believes && forwardedFor !== undefined ? (clientAddressIn(forwardedFor, isTrusted) ?? peer) : peer;
  };
}

/**
 * @returns a test whether a request came over TLS, which is terminated by a proxy. `X-Forwarded-Proto` is used only if the peer is
 * trusted.
 */
export function tlsBehind(proxies: readonly Network[] | undefined): (req: IncomingMessage) => boolean {
  if (!proxies) return () => false;
  const isTrusted = membershipTest(proxies);
  // Only the exact value counts: in a list of several values, the client may have written the first.
  return ({ socket, headers }) => headers['x-forwarded-proto'] === 'https' && isTrustedPeer(socket, isTrusted);
}

function isTrustedPeer(socket: Socket, isTrusted: (ip: string) => boolean): boolean {
  const peer = peerOf(socket);
  return peer === null ? isUnixSocket(socket) : isTrusted(peer);
}

/** Converts an IPv4 address that is mapped to IPv6 back to IPv4. */
const unmapped = (ip: string) => ip.replace(/^::ffff:(?=\d+\.)/i, '');

function peerOf({ remoteAddress }: Socket): string | null {
  return remoteAddress === undefined ? null : unmapped(remoteAddress);
}

/**
 * A Unix socket has no address at either end. A TCP connection that was reset lacks only the remote one, and its client must not be
 * trusted.
 */
const isUnixSocket = ({ localAddress, destroyed }: Socket) => localAddress === undefined && !destroyed;

/** @returns the address of the client, the last one that is not a trusted proxy; null if there is none. */
function clientAddressIn(forwardedFor: string, isTrusted: (ip: string) => boolean): string | null {
  let client: string | null = null;
  let end = forwardedFor.length;
  for (let hops = 0; hops < MAX_HOPS && end >= 0; hops++) {
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1);
    const address = addressIn(forwardedFor.slice(comma + 1, end).trim());
    if (address === null) break;
    client = address;
    if (!isTrusted(address)) break;
    end = comma;
  }
  return client;
}

/** Parses one entry. Some proxies add the port: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function addressIn(entry: string): string | null {
  const [, bracketed, ipv4] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(entry) ?? [];
  const ip = bracketed ?? ipv4 ?? entry;
  // A zone (`%eth0`) names an interface of the sender, and may have any length.
  return isIP(ip) === 0 || ip.includes('%') ? null : unmapped(ip);
}

const MAX_REMEMBERED = 10_000;

/** Membership test for networks. Remembers its results, since a check of the list takes a noticeable part of a request's time. */
function membershipTest(networks: readonly Network[]): (ip: string) => boolean {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  const verdicts = new Map<string, boolean>();
  return (ip) => {
    let verdict = verdicts.get(ip);
    if (verdict === undefined) {
      if (verdicts.size >= MAX_REMEMBERED) verdicts.clear();
      verdict = list.check(ip, isIPv4(ip) ? 'ipv4' : 'ipv6');
      verdicts.set(ip, verdict);
    }
    return verdict;
  };
}
