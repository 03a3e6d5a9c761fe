/** Addresses at which clouds return the credentials of a machine to any process on it. Nothing is ever forwarded to them. */
import { BlockList, isIP, isIPv6 } from 'node:net';

const SINGLE_IPV4 = [
  '169.254.169.254', // Most clouds
  '169.254.170.2', // Amazon, credentials of containers
  '169.254.170.23', // Amazon, credentials of pods
  '169.254.42.42', // Scaleway
  '169.254.0.23', // Tencent
  '168.63.129.16', // Azure
  '100.100.100.200', // Alibaba
  '192.0.0.192', // Oracle
];
const SINGLE_IPV6 = [
  'fd00:ec2::254', // Amazon
  'fd00:ec2::23', // Amazon, credentials of pods
  'fd20:ce::254', // Google
  'fd00:42::42', // Scaleway
];

const METADATA_ADDRESSES = new BlockList();
METADATA_ADDRESSES.addSubnet('169.254.0.0', 16);
METADATA_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');
for (const address of SINGLE_IPV4) METADATA_ADDRESSES.addAddress(address);
for (const address of SINGLE_IPV6) METADATA_ADDRESSES.addAddress(address, 'ipv6');

/** Positions of the bytes of an IPv4 address in an IPv6 address of a NAT64, by the length of its prefix (RFC 6052, 2.2). */
const NAT64: Readonly<Record<32 | 40 | 48 | 56 | 64 | 96, readonly number[]>> = {
  32: [4, 5, 6, 7],
  40: [5, 6, 7, 9],
  48: [6, 7, 9, 10],
  56: [7, 9, 10, 11],
  64: [9, 10, 11, 12],
  96: [12, 13, 14, 15],
};

/** IPv6 addresses that lead to an IPv4 address: their prefix, its length, and the positions of the bytes of the latter, which may be inverted. */
const TRANSLATED: readonly [string, number, (readonly number[])[], 'inverted'?][] = [
  ['::', 96, [NAT64[96]]], // IPv4-compatible
  ['::ffff:0:0', 96, [NAT64[96]]], // IPv4-mapped
  ['::ffff:0:0:0', 96, [NAT64[96]]], // IPv4-translated (RFC 2765)
  ['64:ff9b::', 96, [NAT64[96]]], // NAT64
  ['64:ff9b:1::', 48, [NAT64[48], NAT64[56], NAT64[64], NAT64[96]]], // NAT64 of a network (RFC 8215)
  ['2002::', 16, [[2, 3, 4, 5]]], // 6to4
  ['2001::', 32, [NAT64[32]]], // Teredo, its server
  ['2001::', 32, [NAT64[96]], 'inverted'], // Teredo, its client
];
const RULES = TRANSLATED.map(([prefix, length, places, inverted]) => {
  const network = new BlockList();
  network.addSubnet(prefix, length, 'ipv6');
  return { network, places, mask: inverted ? 0xff : 0 };
});

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** @param hostname as a URL has it: lower case, IPv4 in four decimals, IPv6 in brackets. */
export function isMetadataHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? METADATA_NAMES.has(host.replace(/\.$/, '')) : isMetadataAddress(host);
}

/** @param address IPv4, IPv6, or IPv4 within IPv6 in any form; a zone is allowed. */
export function isMetadataAddress(address: string): boolean {
  const [plain = ''] = address.split('%');
  if (!isIPv6(plain)) return METADATA_ADDRESSES.check(plain);
  return METADATA_ADDRESSES.check(plain, 'ipv6') || leadsToMetadata(plain);
}

function leadsToMetadata(address: string): boolean {
  const bytes = bytesOf(address);
  const at = (places: readonly number[], mask = 0) => places.map((place) => (bytes[place] ?? 0) ^ mask).join('.');
  const addresses = RULES.flatMap(({ network, places, mask }) =>
    network.check(address, 'ipv6') ? places.map((each) => at(each, mask)) : [],
  );
  const isIsatap = /^[02]\.0\.94\.254$/.test(at([8, 9, 10, 11]));
  if (isIsatap) addresses.push(at(NAT64[96]));
  if (addresses.some((each) => METADATA_ADDRESSES.check(each))) return true;
  // A network can have a NAT64 with a prefix of its own. Whole networks of addresses would match other addresses by chance.
  return Object.values(NAT64).some((places) => SINGLE_IPV4.includes(at(places)));
}

/** The 16 bytes of an IPv6 address. */
function bytesOf(address: string): number[] {
  // As a URL writes it: without an IPv4 part.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => text.split(':').filter(Boolean);
  const [before, after] = [groups(head), groups(tail ?? '')];
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff]);
}
