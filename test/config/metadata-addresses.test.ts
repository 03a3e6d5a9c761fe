import { expect } from 'chai';
import dns from 'node:dns';
import { upstreamUrl } from '../../config/urls.js';
import { rememberingLookup } from '../../daemon/http/proxy/dns-lookup.js';
import { TestClock } from '../support/clock.js';

/** Groups of an IPv6 address for two bytes each, from an IPv4 address. */
function groupsOf(ipv4: string): [string, string] {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  return [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)];
}
const inverted = (ipv4: string) =>
  ipv4
    .split('.')
    .map((byte) => 255 - Number(byte))
    .join('.');
/** The bytes in hexadecimal digits: where RFC 6052 puts them across groups. */
const digits = (ipv4: string) =>
  ipv4.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0')) as [string, string, string, string];

/** How an IPv4 address can be written as an IPv6 address that leads to it. */
const FORMS: Readonly<Record<string, (ipv4: string) => string>> = {
  'IPv4-mapped': (ipv4) => `::ffff:${ipv4}`,
  'IPv4-compatible': (ipv4) => `::${ipv4}`,
  'IPv4-translated': (ipv4) => `::ffff:0:${ipv4}`,
  NAT64: (ipv4) => `64:ff9b::${ipv4}`,
  'NAT64 of a network, /96': (ipv4) => `64:ff9b:1:2:3:4:${groupsOf(ipv4).join(':')}`,
  'NAT64 of a network, /64': (ipv4) => {
    const [a, b, c, d] = digits(ipv4);
    return `64:ff9b:1:7:00${a}:${b}${c}:${d}00:0`;
  },
  'NAT64 of a network, /56': (ipv4) => {
    const [a, b, c, d] = digits(ipv4);
    return `64:ff9b:1:7${a}:00${b}:${c}${d}::`;
  },
  'NAT64 of a network, /48': (ipv4) => {
    const [a, b, c, d] = digits(ipv4);
    return `64:ff9b:1:${a}${b}:00${c}:${d}00::`;
  },
  '6to4': (ipv4) => `2002:${groupsOf(ipv4).join(':')}::1`,
  "Teredo's server": (ipv4) => `2001:0:${groupsOf(ipv4).join(':')}:8000:63bf:3fff:fdd2`,
  "Teredo's client": (ipv4) => `2001:0:4136:e378:8000:63bf:${groupsOf(inverted(ipv4)).join(':')}`,
  ISATAP: (ipv4) => `2001:db8:1:2:0:5efe:${ipv4}`,
  'ISATAP of a global address': (ipv4) => `fd00:1::200:5efe:${ipv4}`,
};

/** Forms with a prefix that only the network's operator knows. */
const OWN_PREFIXES: typeof FORMS = {
  '/96': (ipv4) => `2001:db8:64::${ipv4}`,
  '/64': (ipv4) => {
    const [a, b, c, d] = digits(ipv4);
    return `2001:db8:64:7:00${a}:${b}${c}:${d}00:0`;
  },
  '/40': (ipv4) => {
    const [a, b, c, d] = digits(ipv4);
    return `2001:db8:64${a}:${b}${c}:00${d}::`;
  },
  '/32': (ipv4) => `2001:db8:${groupsOf(ipv4).join(':')}::`,
};

const FORBIDDEN = ['169.254.169.254', '169.254.1.2', '100.100.100.200', '168.63.129.16', '192.0.0.192'];
const ALLOWED = ['169.253.1.254', '100.100.100.201', '168.63.129.17', '10.1.2.3'];

const isRefused = (address: string) => upstreamUrl.parse(`https://[${address}]/`) === undefined;

/** Whether a name with this address is refused when it is resolved. */
async function isNameRefused(address: string): Promise<boolean> {
  const original = dns.lookup;
  Object.assign(dns, {
    lookup: (_name: string, _options: unknown, callback: (error: null, found: string, family: number) => void) => {
      callback(null, address, 6);
    },
  });
  try {
    return await new Promise((resolve) => {
      rememberingLookup(new TestClock())('api.example.com', {}, (error) => {
        resolve(error !== null);
      });
    });
  } finally {
    dns.lookup = original;
  }
}

describe('findings-3 A11: a metadata address within an IPv6 address', () => {
  for (const [form, write] of Object.entries(FORMS)) {
    it(`is refused: ${form}`, async () => {
      for (const ipv4 of FORBIDDEN) {
        const address = write(ipv4);
        expect(isRefused(address), `${ipv4} as ${address}`).to.equal(true);
        expect(await isNameRefused(address), `a name for ${address}`).to.equal(true);
      }
      for (const ipv4 of ALLOWED) expect(isRefused(write(ipv4)), `${ipv4} as ${write(ipv4)}`).to.equal(false);
    });
  }

  for (const [prefix, write] of Object.entries(OWN_PREFIXES)) {
    it(`is refused with a NAT64 prefix ${prefix} of a network`, () => {
      for (const ipv4 of ['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '192.0.0.192'])
        expect(isRefused(write(ipv4)), `${ipv4} as ${write(ipv4)}`).to.equal(true);
      for (const ipv4 of ALLOWED) expect(isRefused(write(ipv4)), `${ipv4} as ${write(ipv4)}`).to.equal(false);
    });
  }

  it('does not make other addresses suspicious', () => {
    for (const address of ['2606:4700::6812:1e2', '2001:4860:4860::8888', '::1', 'fd00::1', '64:ff9b:1::1', '2002::1'])
      expect(isRefused(address), address).to.equal(false);
    for (const address of ['fd00:ec2::254', 'fd20:ce::254', 'fd00:42::42', 'fe80::1'])
      expect(isRefused(address), address).to.equal(true);
  });
});
