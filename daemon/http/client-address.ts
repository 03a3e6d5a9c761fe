/**
 * Whose request it is. Behind a proxy that is not the socket's peer but what the proxy says in `X-Forwarded-For`; anybody
 * can send that field, so it is believed of those in `TRUSTED_PROXIES` only. Each proxy adds the address it was called
 * from at the end: read from there, the first that is no proxy of ours is the client, whatever it wrote in front.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, type Socket } from 'node:net';
import type { Network } from '../../config/urls.js';

/**
 * @param forwardedFor the value of `X-Forwarded-For`; several fields are joined, as they mean one list.
 * @returns null where there is none, as over a unix socket.
 */
export type AddressOf = (socket: Socket, forwardedFor: string | undefined) => string | null;

// Who is within a trusted network could otherwise have us walk as long a way as it likes.
const MOST_HOPS = 32;

export function addressesBehind(proxies: readonly Network[] | undefined): AddressOf {
  if (!proxies) return peerOf;
  const isTrusted = memberOf(proxies);
  return (socket, forwardedFor) => {
    const peer = peerOf(socket);
    const believes = isBelieved(socket, isTrusted);
    return believes && forwardedFor !== undefined ? (walk(forwardedFor, isTrusted) ?? peer) : peer;
  };
}

/** @returns tells whether a request came over TLS, which ends at a proxy: its `X-Forwarded-Proto` is believed if the proxy is. */
export function tlsBehind(proxies: readonly Network[] | undefined): (req: IncomingMessage) => boolean {
  if (!proxies) return () => false;
  const isTrusted = memberOf(proxies);
  // A list would tell of the ways to several proxies, and whoever wrote its beginning may be the client.
  return ({ socket, headers }) => headers['x-forwarded-proto'] === 'https' && isBelieved(socket, isTrusted);
}

function isBelieved(socket: Socket, isTrusted: (ip: string) => boolean): boolean {
  const peer = peerOf(socket);
  return peer === null ? isUnixSocket(socket) : isTrusted(peer);
}

/** IPv4 as IPv4, also where the socket speaks IPv6. */
const plain = (ip: string) => ip.replace(/^::ffff:(?=\d+\.)/i, '');

function peerOf({ remoteAddress }: Socket): string | null {
  return remoteAddress === undefined ? null : plain(remoteAddress);
}

/** It has no address at either end. A connection that was reset lacks the other end's only, and its client is not to be believed. */
const isUnixSocket = ({ localAddress, destroyed }: Socket) => localAddress === undefined && !destroyed;

/** @returns the last address that is worth something, null if there is none. */
function walk(forwardedFor: string, isTrusted: (ip: string) => boolean): string | null {
  let client: string | null = null;
  let end = forwardedFor.length;
  for (let hops = 0; hops < MOST_HOPS && end >= 0; hops++) {
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1);
    const address = addressIn(forwardedFor.slice(comma + 1, end).trim());
    if (address === null) break;
    client = address;
    if (!isTrusted(address)) break;
    end = comma;
  }
  return client;
}

/** Some proxies add the port: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function addressIn(entry: string): string | null {
  const [, bracketed, ipv4] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(entry) ?? [];
  const ip = bracketed ?? ipv4 ?? entry;
  // A zone names an interface of whoever wrote it, and may be of any length.
  return isIP(ip) === 0 || ip.includes('%') ? null : plain(ip);
}

const MOST_REMEMBERED = 10_000;

/** Remembers what it found: to ask the list takes as long as much else of a request. */
function memberOf(networks: readonly Network[]): (ip: string) => boolean {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  const verdicts = new Map<string, boolean>();
  return (ip) => {
    let verdict = verdicts.get(ip);
    if (verdict === undefined) {
      if (verdicts.size >= MOST_REMEMBERED) verdicts.clear();
      verdict = list.check(ip, isIPv4(ip) ? 'ipv4' : 'ipv6');
      verdicts.set(ip, verdict);
    }
    return verdict;
  };
}
