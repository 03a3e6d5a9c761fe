/** Changes what names resolve to in this process, and which authority it trusts, for a while. */
import dns from 'node:dns';
import tls from 'node:tls';

type Answered = (error: NodeJS.ErrnoException | null, address?: unknown, family?: number) => void;

/**
 * Makes names that end in `.test` resolve to `addressOf`: an address; null: no such name; undefined: the lookup never finishes.
 * @returns a function that restores the original.
 */
export function overrideDns(addressOf: (name: string) => string | null | undefined): () => void {
  const { lookup } = dns;
  const replaced = (name: string, options: dns.LookupOptions, answered: Answered) => {
    if (!name.endsWith('.test')) {
      lookup(name, options, answered as never);
      return;
    }
    const address = addressOf(name);
    if (address === undefined) return;
    process.nextTick(() => {
      if (address === null) answered(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
      else if (options.all) answered(null, [{ address, family: 4 }]);
      else answered(null, address, 4);
    });
  };
  dns.lookup = replaced as typeof dns.lookup;
  return () => {
    dns.lookup = lookup;
  };
}

/** Makes TLS connections trust only one authority. @returns a function that restores the original. */
export function trustAuthority(certificate: string): () => void {
  const { connect } = tls;
  tls.connect = ((options: tls.ConnectionOptions, ...rest: []) =>
    connect({ ...options, ca: certificate }, ...rest)) as typeof tls.connect;
  return () => {
    tls.connect = connect;
  };
}

/** Makes names that end in `.test` resolve to this machine, and TLS connections trust only this authority, during the tests of a suite. */
export function trustTestNames(certificate: string): void {
  const restores: (() => void)[] = [];
  before(() => {
    restores.push(
      overrideDns(() => '127.0.0.1'),
      trustAuthority(certificate),
    );
  });
  after(() => {
    for (const restore of restores.splice(0)) restore();
  });
}
