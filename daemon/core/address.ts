/** Addresses as they are counted: one for whoever can choose among many. */

const MAPPED = /^::ffff:(?=\d+\.)/i;

/**
 * Of an IPv4 address itself; of an IPv6 one its network of 64 bits, for its user can choose among 2^64. IPv4 within IPv6
 * (`::ffff:a.b.c.d`, however it is written) is IPv4.
 */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  if (MAPPED.test(ip)) return ip.replace(MAPPED, '');
  const groups = groupsOf(ip);
  const isMapped =
    groups.length === 8 && groups.slice(0, 6).every((group, index) => group === (index < 5 ? 0 : 0xffff));
  if (isMapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join('.');
  const prefix = groups.slice(0, 4).map((group) => group.toString(16));
  return `${prefix.join(':')}::/64`;
}

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
