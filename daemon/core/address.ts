/** Client addresses for rate limits: one key for all addresses that a client can choose from. */

const MAPPED = /^::ffff:(?=\d+\.)/i;
// Four groups in canonical form. An address that begins with zeros may be IPv4.
const PLAIN_PREFIX = /^[1-9a-f][\da-f]{0,3}(?::(?:0|[1-9a-f][\da-f]{0,3})){3}(?=:)/;

/**
 * Returns an IPv4 address unchanged, and for an IPv6 address its /64 network, because a client can choose among its 2^64 addresses.
 * IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`, in any notation) count as IPv4.
 */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  const plain = PLAIN_PREFIX.exec(ip); // Fast path: parsing the address takes twenty times as long.
  if (plain) return `${plain[0]}::/64`;
  if (MAPPED.test(ip)) return ip.replace(MAPPED, '');
  const groups = groupsOf(ip);
  return ipv4In(groups) ?? `${groups.slice(0, 4).map(hexadecimal).join(':')}::/64`;
}

const hexadecimal = (group: number) => group.toString(16);

/** The eight groups of an IPv6 address. A zone is removed; a trailing IPv4 address counts as two groups. */
function groupsOf(ip: string): number[] {
  const [before = [], after = []] = ip
    .replace(/%.*$/, '')
    .split('::')
    .map((text) => (text === '' ? [] : text.split(':').flatMap(numbersOf)));
  // "::" is expanded to as many zero groups as needed.
  return [...before, ...Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0), ...after];
}

function numbersOf(group: string): number[] {
  if (!group.includes('.')) return [parseInt(group, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d];
}

function ipv4In(groups: readonly number[]): string | null {
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (!isMapped) return null;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}
