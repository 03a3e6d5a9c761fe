/** Addresses as they are counted: one for whoever can choose among many. */

const MAPPED = /^::ffff:(?=\d+\.)/i;
// Four groups as they are usually written. What begins with zeros may be IPv4.
const PLAIN_PREFIX = /^[1-9a-f][\da-f]{0,3}(?::(?:0|[1-9a-f][\da-f]{0,3})){3}(?=:)/;

/**
 * Of an IPv4 address itself; of an IPv6 one its network of 64 bits, for its user can choose among 2^64. IPv4 within IPv6
 * (`::ffff:a.b.c.d`, however it is written) is IPv4.
 */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  const plain = PLAIN_PREFIX.exec(ip); // To take an address apart costs twenty times as much.
  if (plain) return `${plain[0]}::/64`;
  if (MAPPED.test(ip)) return ip.replace(MAPPED, '');
  const groups = groupsOf(ip);
  return ipv4In(groups) ?? `${groups.slice(0, 4).map(hexadecimal).join(':')}::/64`;
}

const hexadecimal = (group: number) => group.toString(16);

/** The eight groups of an IPv6 address. What stands at its end may be none: a zone is cut off, IPv4 is two of them. */
function groupsOf(ip: string): number[] {
  const [before = [], after = []] = ip
    .replace(/%.*$/, '')
    .split('::')
    .map((text) => (text === '' ? [] : text.split(':').flatMap(numbersOf)));
  // A "::" stands for as many zeros as make eight groups.
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
