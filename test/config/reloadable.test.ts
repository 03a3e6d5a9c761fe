import { expect } from 'chai';
import { DECLARED, type Live, type Reloadable, type ReloadableKey, type Settings } from '../../config/declarations.js';
import { type AllSettings, type Loaded, loadSettings } from '../../config/settings.js';
import type { Daemon } from '../../daemon/compose.js';
import type { BuildContext } from '../../daemon/compose/context.js';
import { MANAGEMENT_TOKEN } from '../support/settings.js';

const keysOf = (value: object) => Object.keys(value).sort();

describe('reloadable settings', () => {
  it('are apart from those that a daemon keeps until it ends', () => {
    const { settings, reloadable } = loadSettings({ MANAGEMENT_TOKEN });
    const declared = Object.entries(DECLARED);
    const marked = declared.filter(([, { isReloadable }]) => isReloadable).map(([key]) => key);
    expect(keysOf(reloadable)).to.deep.equal(marked.sort());
    expect(keysOf({ ...settings, ...reloadable })).to.deep.equal(keysOf(DECLARED));
    expect(keysOf(settings)).to.have.length(declared.length - marked.length);
  });

  it('cannot be read where a daemon starts', () => {
    expect(refusedByTheCompiler).to.be.a('function'); // That it was compiled is the test.
  });
});

/**
 * What the compiler refuses. Nothing here runs: the build fails as soon as one of the lines marked stops being an error, or the first
 * two start to be one.
 */
function refusedByTheCompiler(loaded: Loaded, live: Live, { settings: built }: BuildContext, daemon: Daemon): void {
  const { settings } = loaded;
  settings.maxConnections;
  live.current.requestTimeoutMs;
  // @ts-expect-error It is reloadable: who read it here would keep it until the daemon ends.
  settings.requestTimeoutMs;
  // @ts-expect-error The same for what the builders of the daemon are given.
  built.ipRateLimit;
  // @ts-expect-error No piece can be given it as part of the settings that the daemon starts with.
  settings satisfies Pick<AllSettings, 'errorShape'>;
  // @ts-expect-error It is not reloadable: no SIGHUP changes it, though who asks for it each time would think so.
  live.current.maxConnections;
  // @ts-expect-error Nor can a piece declare that it asks for it each time.
  live satisfies Live<'maxRequestBytes'>;
  // @ts-expect-error SIGHUP puts the reloadable ones in force, and not others.
  daemon.apply(settings);
}

/** The compiler makes both types of the declarations: each key is in one of them, and some are reloadable. */
type Both = Extract<keyof Settings, keyof Reloadable>;
type Neither = Exclude<keyof AllSettings, keyof Settings | keyof Reloadable>;
true satisfies [Both, Neither] extends [never, never] ? true : false;
true satisfies [ReloadableKey] extends [never] ? false : true;
