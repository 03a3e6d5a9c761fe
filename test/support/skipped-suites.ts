/** Suites that skip themselves where the program they need is missing. */

/** What mocha's types leave out. */
type Hooked = Mocha.Suite & { getHooks: (name: 'beforeAll' | 'afterAll') => Mocha.Hook[] };

/**
 * A suite that skips itself in its first `before` has set up nothing. Mocha runs its `after` all the same; here it does not, in `suite`
 * and all suites in it.
 */
export function skipAfterHooks(suite: Mocha.Suite): void {
  const hooked = suite as Hooked;
  const [first] = hooked.getHooks('beforeAll');
  if (first) {
    for (const after of hooked.getHooks('afterAll')) {
      const isPending = after.isPending.bind(after);
      after.isPending = () => first.isPending() || isPending();
    }
  }
  suite.suites.forEach(skipAfterHooks);
}
