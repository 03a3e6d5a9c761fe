import { expect } from 'chai';
import { DECLARED, type Live, type Reloadable, type ReloadableKey, type Settings } from '../../config/declarations.js';
import { type AllSettings, type Loaded, loadSettings } from '../../config/settings.js';
import type { Daemon } from '../../daemon/compose.js';
import type { BuildContext } from '../../daemon/compose/context.js';
import { MANAGEMENT_TOKEN } from '../support/settings.js';

const keysOf = (value: object) => Object.keys(value).sort();

describe('reloadable settings', () => {
  it('are separate from those that are fixed at startup', () => {
    const { settings, reloadable } = loadSettings({ MANAGEMENT_TOKEN });
    const declared = Object.entries(DECLARED);
    const marked = declared.filter(([, { isReloadable }]) => isReloadable).map(([key]) => key);
    expect(keysOf(reloadable)).to.deep.equal(marked.sort());
    expect(keysOf({ ...settings, ...reloadable })).to.deep.equal(keysOf(DECLARED));
    expect(keysOf(settings)).to.have.length(declared.length - marked.length);
  });

  it('cannot be read during startup', () => {
    expect(refusedByTheCompiler).to.be.a('function'); // The test is that it compiles.
  });
});

/**
 * Code that the compiler rejects. It never runs. The build fails if one of the marked lines stops being an error, or one of the first two
 * becomes one.
 */
function refusedByTheCompiler(loaded: Loaded, live: Live, { settings: built }: BuildContext, daemon: Daemon): void {
  const { settings } = loaded;
  settings.maxConnections;
  live.current.requestTimeoutMs;
  // @ts-expect-error It is reloadable: a value read here would never change.
  settings.requestTimeoutMs;
  // @ts-expect-error The same applies to the settings that are passed to the parts of the daemon.
  built.ipRateLimit;
  // @ts-expect-error No part can receive it as one of the fixed settings.
  settings satisfies Pick<AllSettings, 'errorShape'>;
  // @ts-expect-error It is not reloadable: reading it each time would suggest that SIGHUP changes it.
  live.current.maxConnections;
  // @ts-expect-error A part cannot declare that it reads it each time.
  live satisfies Live<'maxRequestBytes'>;
  // @ts-expect-error SIGHUP applies only reloadable settings.
  daemon.apply(settings);
}

/** Checks of the derived types: each key is in exactly one of them, and some keys are reloadable. */
type Both = Extract<keyof Settings, keyof Reloadable>;
type Neither = Exclude<keyof AllSettings, keyof Settings | keyof Reloadable>;
true satisfies [Both, Neither] extends [never, never] ? true : false;
true satisfies [ReloadableKey] extends [never] ? false : true;
