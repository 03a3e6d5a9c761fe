/** What the terminal UI offers to each role, compared with what the API allows. */
import { expect } from 'chai';
import type { WireOperator, WireSelf } from '../../daemon/api/contract.js';
import { ROUTES } from '../../daemon/api/routes.js';
import { ROLES, type Role } from '../../daemon/api/vocabulary.js';
import { BINDINGS, bindingsOn, keyScopeOf } from '../../tui/keys/press.js';
import { commandsFor } from '../../tui/keys/command-line/commands.js';
import type { Effect } from '../../tui/state/exchange.js';
import { tabsOf } from '../../tui/state/navigation.js';
import { deedOf, deedOfForm, deedOfRequest, may, OF_CHANGES, OPERATIONS } from '../../tui/state/permitted.js';
import { type State, view } from '../../tui/state/state.js';
import { daemonForSuite, MANAGEMENT_TOKEN } from '../support/daemon.js';
import { Operator } from './operator.js';
import { ROOT, self } from './simulated.js';
import { full, WAYS } from './ways.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

interface Caller {
  name: string;
  /** Null: the holder of the management token. */
  role: Role | null;
  isLimited: boolean;
  tabs: string;
}

const CALLERS: readonly Caller[] = [
  { name: 'the holder of the management token', role: null, tabs: 'overview tokens projects audit cache events top' },
  { name: 'a viewer', role: 'viewer', tabs: 'overview tokens projects top' },
  { name: 'an auditor', role: 'auditor', tabs: 'overview tokens projects audit events top' },
  { name: 'an issuer', role: 'issuer', tabs: 'overview tokens projects top' },
  { name: 'an operator', role: 'operator', tabs: 'overview tokens projects cache top' },
  { name: 'an admin', role: 'admin', tabs: 'overview tokens projects audit cache events top' },
  {
    name: 'an admin of one project',
    role: 'admin',
    isLimited: true,
    tabs: 'overview tokens projects audit cache events top',
  },
].map((caller) => ({ isLimited: false, ...caller }) as Caller);

describe('what the terminal UI offers', () => {
  const daemon = daemonForSuite();

  it('has been compared for every role', () => {
    expect(new Set(CALLERS.map(({ role }) => role))).to.deep.equal(new Set([null, ...ROLES]));
  });

  for (const { name, role, isLimited, tabs } of CALLERS) {
    describe(`to ${name}`, () => {
      let secret = MANAGEMENT_TOKEN;
      let caller: WireSelf;
      const authorized = () => ({ authorization: `Bearer ${secret}` });

      before(async () => {
        if (role !== null) {
          const projects = isLimited ? [(await daemon.createProject()).id] : null;
          const created = await daemon.manage('POST', '/manage/operators', { name, role, projects });
          secret = (created.body as WireOperator & { secret: string }).secret;
        }
        caller = (await daemon.manage('GET', '/manage/self', undefined, authorized())).body as WireSelf;
      });

      const begun = () => {
        const simulated = full();
        simulated.self = caller;
        return new Operator({ daemon: simulated });
      };

      /** Whether the daemon refuses the operation to the role, whatever it is about. */
      async function isRefused(operation: keyof typeof ROUTES, body: object = {}): Promise<boolean> {
        const { method, path } = ROUTES[operation];
        const closed = new AbortController();
        const response = await fetch(daemon.managementUrl + path.replace('{id}', UNKNOWN), {
          method,
          headers: { ...authorized(), 'content-type': 'application/json' },
          ...(method !== 'GET' && method !== 'DELETE' && { body: JSON.stringify(body) }),
          signal: closed.signal,
        });
        const isProblem = response.status >= 400;
        const { code } = (isProblem ? await response.json() : {}) as { code?: string };
        closed.abort();
        expect(response.status === 403, `${operation}: ${response.status} ${code}`).to.equal(code === 'not_permitted');
        return code === 'not_permitted';
      }

      it('is what the API allows, operation by operation', async () => {
        const { state } = begun();
        const offered = OPERATIONS.filter((operation) => may(state, operation));
        const refused = await Promise.all(OPERATIONS.map((operation) => isRefused(operation)));
        expect(offered).to.deep.equal(OPERATIONS.filter((_, at) => !refused[at]));
        expect(may(state, 'changeToken'), 'changes other than a revocation').to.equal(
          may(state, 'revokeToken') && !(await isRefused('updateToken', { is_active: true })),
        );
      });

      it('has these screens, each with its number', () => {
        const operator = begun();
        expect(tabsOf(operator.state).join(' ')).to.equal(tabs);
        for (const [at, tab] of 'overview tokens projects audit cache events top'.split(' ').entries()) {
          operator.press(String(at + 1));
          const isOffered = tabs.split(' ').includes(tab);
          expect(operator.screen === tab, tab).to.equal(isOffered);
          if (!isOffered) expect(operator.says).to.match(/^not permitted: the role \w+ may not (?:read|purge) /);
        }
        const commands = commandsFor(operator.state).map((command) => command.name);
        for (const screen of ['overview', 'tokens', 'projects', 'audit', 'cache', 'events', 'top'])
          expect(commands.includes(screen), screen).to.equal(tabs.split(' ').includes(screen));
        for (const screen of ['operators', 'trusts']) expect(commands.includes(screen)).to.equal(role === null);
      });

      it('are keys that nothing refuses; the others say why they are not offered', () => {
        for (const [place, way] of Object.entries(WAYS)) {
          const operator = begun().press(...way);
          operator.isHeld = true;
          const before: State = { ...operator.state, message: null };
          const scope = keyScopeOf(before);
          const offered = bindingsOn(scope, before);
          for (const binding of bindingsOn(scope)) {
            const [key = ''] = binding.keys;
            operator.state = before;
            operator.forgets().press(key).loses();
            const isRefused = operator.says?.startsWith('not permitted') ?? false;
            expect(isRefused, `${place}: ${key} ${binding.label}`).to.equal(
              !offered.some((it) => it.action === binding.action),
            );
          }
        }
      });
    });
  }

  it('names for each key what it does in the API', () => {
    const seen = new Set<string>();
    // The last row of a list has another state than the first one.
    for (const way of Object.values(WAYS).flatMap((keys) => [keys, [...keys, 'G']])) {
      const operator = new Operator({ daemon: full() }).press(...way);
      operator.isHeld = true;
      const before = operator.state;
      for (const { action, needs, keys } of bindingsOn(keyScopeOf(before))) {
        if (needs === undefined) continue;
        operator.state = before;
        operator
          .forgets()
          .press(keys[0] ?? '')
          .loses();
        const deed = deedDone(before, operator);
        if (deed === null) continue;
        expect(needs, action).to.equal(deed);
        seen.add(action);
      }
    }
    const unseen = BINDINGS.filter(({ needs, action }) => needs !== undefined && !seen.has(action)).map(
      ({ action }) => action,
    );
    // They need a history.
    expect(unseen).to.deep.equal(['logs.undo-it', 'global.undo', 'global.redo']);
  });

  it('leaves a screen when the role loses it, and offers again what it gets', () => {
    const daemon = full();
    daemon.self = self('auditor');
    const operator = new Operator({ daemon }).press('4');
    expect(operator.screen).to.equal('audit');
    daemon.self = self('viewer');
    operator.passes(31_000);
    expect(operator.screen).to.equal('tokens');
    expect(operator.followed).to.deep.equal([]);
    daemon.self = ROOT;
    operator.passes(31_000);
    expect(operator.press('4').screen).to.equal('audit');
  });
});

/** What a key has done, or has begun to do; null: nothing in the API. */
function deedDone(before: State, operator: Operator) {
  const { state, effects, top } = operator;
  if (top?.kind === 'dialog' && top !== before.layers.at(-1)) return deedOfForm(top.purpose);
  const change = effects.find((effect): effect is Extract<Effect, { do: 'change' }> => effect.do === 'change');
  if (change) return OF_CHANGES[change.change.what];
  if (view(state) !== view(before)) return deedOf(view(state).screen);
  const load = effects.find((effect): effect is Extract<Effect, { do: 'load' }> => effect.do === 'load');
  return load ? deedOfRequest(load.request) : null;
}
