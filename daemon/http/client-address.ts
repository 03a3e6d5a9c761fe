/**
 * The address of a request's client. Behind a proxy it is not the socket's peer but in `X-Forwarded-For`. Any client can send that
 * header, so it is used only if the peer is in `TRUSTED_PROXIES`. Each proxy appends the address of its own peer. Read from the end, the
 * first address that is not a trusted proxy is the client, whatever the client wrote in front of it.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, type Socket } from 'node:net';
import type { Network } from '../../config/urls.js';

/**
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
