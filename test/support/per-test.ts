/** What tests use is set up and stopped by hooks; a test uses it as if it were a constant. */

/** Made before each test of the suite in which this is called, and stopped after it if it can be. @returns the current one at any time. */
export const perTest = <T extends object>(start: () => T | Promise<T>): T => managed(start, beforeEach, afterEach);

/** Made once for all tests of the suite in which this is called. */
export const perSuite = <T extends object>(start: () => T | Promise<T>): T => managed(start, before, after);

function managed<T extends object>(start: () => T | Promise<T>, begin: Mocha.HookFunction, end: Mocha.HookFunction): T {
  let current: T | undefined;
  begin(async () => {
    current = await start();
  });
  end(async () => {
    await (current as { stop?: () => unknown } | undefined)?.stop?.();
    current = undefined;
  });
  const now = () => {
    if (!current) throw new Error('it is used outside of a test');
    return current;
  };
  return new Proxy({} as T, {
    get: (_, name) => {
      const value: unknown = Reflect.get(now(), name);
      return typeof value === 'function' ? (value.bind(now()) as unknown) : value;
    },
    set: (_, name, value) => Reflect.set(now(), name, value),
    has: (_, name) => Reflect.has(now(), name),
  });
}
