/** The terminal UI without a terminal: its state and its effects, with the running system. */
import { expect } from 'chai';
import { ManagementClient } from '../../../daemon/api/client.js';
import { load, type DataSource } from '../../../tui/effects/load.js';
import { Runner } from '../../../tui/effects/runner.js';
import { initialState } from '../../../tui/state/initial-state.js';
import type { Effect } from '../../../tui/state/exchange.js';
import { NOTHING_SAVED } from '../../../tui/state/saved.js';
import { isViewLoaded, lengthOf, rowAt } from '../../../tui/state/window.js';
import { Store } from '../../../tui/store.js';
import { MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import type { ContractContext } from './context.js';

const ROWS = 40;

const idsIn = (data: unknown) => (data as { id: string }[]).map(({ id }) => id);

export function behavesInTheTerminalUi(given: ContractContext): void {
  describe('the terminal UI', () => {
    const connection = () => ({
      server: given.system.instance().url,
      managementToken: MANAGEMENT_TOKEN,
      timeoutMs: 10_000,
      fetch,
    });
    const asking = (): DataSource => ({
      client: new ManagementClient({ ...connection(), frontEnd: 'tui' }),
      contexts: () => Promise.resolve([]),
      signal: new AbortController().signal,
      progress: () => undefined,
    });

    it('marks every token of its list, over all pages', async () => {
      const { items } = await given.system.walk<{ id: string }>('/manage/tokens?limit=200&sort=expires_at');
      const request = { of: 'allTokens', query: { sort: 'expires_at' }, as: 'marks' } as const;
      const { data } = await load(asking(), request);
      expect(idsIn(data)).to.deep.equal(items.map(({ id }) => id));
    });

    it('knows every project', async () => {
      const { items } = await given.system.walk<{ id: string }>('/manage/projects');
      const { data } = await load(asking(), { of: 'projects' });
      expect(idsIn(data)).to.deep.equal(items.map(({ id }) => id));
    });

    it('scrolls through its list of tokens from end to end without a gap', async () => {
      const queries: Record<string, string | undefined>[] = [];
      const runner = new Runner(
        {
          act: (action) => {
            store.act(action);
          },
          connect: () => Promise.reject(new Error('there is no other')),
          contexts: () => Promise.resolve([]),
          terminal: { copy: () => Promise.resolve(null), suspend: () => undefined, repaint: () => undefined },
          save: () => Promise.resolve(NOTHING_SAVED),
          remember: () => undefined,
          quit: () => undefined,
        },
        {
          target: { server: 'here', context: null, color: null, isProtected: false, isReadonly: true, project: null },
          saved: NOTHING_SAVED,
          client: connection(),
        },
      );
      const store = new Store({
        state: initialState({
          size: { columns: 120, rows: ROWS },
          look: { ascii: false, hasColor: true, isStill: true },
          target: { server: 'here', context: null, color: null, isProtected: false, isReadonly: true, project: null },
          nowMs: Date.now(),
          tab: 'tokens',
          refreshMs: 600_000,
        }),
        now: Date.now,
        run: (effect: Effect) => {
          if (effect.do === 'load' && effect.request.of === 'tokens') queries.push({ ...effect.request.query });
          runner.run(effect);
        },
        changed: () => undefined,
      });
      const settled = () =>
        eventually('the visible part is read', () => {
          const { window } = store.state.tokens;
          return lengthOf(window) > 0 && isViewLoaded(window, ROWS);
        });
      try {
        store.act({ on: 'began' });
        await settled();
        const seen: string[] = [];
        for (let steps = 0; steps < 500; steps++) {
          const { window } = store.state.tokens;
          const row = rowAt(window, window.cursorIndex);
          if (row) seen[window.cursorIndex] = row.id;
          for (let above = window.top; above <= window.cursorIndex; above++) {
            seen[above] ??= rowAt(window, above)?.id ?? '';
          }
          if (window.cursorIndex === lengthOf(window) - 1) break;
          store.act({ on: 'key', key: 'ctrl+d' });
          await settled();
        }
        const filter = Object.entries(queries[0] ?? {}).filter(
          (entry): entry is [string, string] => entry[1] !== undefined && !['limit', 'cursor'].includes(entry[0]),
        );
        const path = `/manage/tokens?limit=500&${new URLSearchParams(filter).toString()}`;
        const { items } = await given.system.walk<{ id: string }>(path);
        expect(items.length, path).to.be.greaterThan(300);
        expect(seen).to.deep.equal(items.map(({ id }) => id));
      } finally {
        runner.end();
      }
    });
  });
}
