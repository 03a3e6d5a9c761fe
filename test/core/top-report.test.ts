import { expect } from 'chai';
import { ModelNames } from '../../daemon/core/model-names.js';
import type { Notification, Notifications, TopPart, TopQuery } from '../../daemon/core/ports.js';
import { RecentTop } from '../../daemon/core/top/recent-top.js';
import { NotifiedPeers } from '../../daemon/core/top/top-peers.js';
import { TopReports } from '../../daemon/core/top/top-report.js';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';

const QUERY: TopQuery = { by: 'token', window: '1h', sort: 'errors', limit: 50 };

describe('a top report of several instances', () => {
  let clock: TestClock;
  let sent: Notification[];
  let receive: (notification: Notification) => void;
  beforeEach(() => {
    clock = new TestClock({ standsStill: true });
    sent = [];
  });

  function reports(others: number, hasRedis: boolean): TopReports {
    const recent = new RecentTop({ clock, models: new ModelNames() });
    const notifications: Notifications = {
      send: (notification) => sent.push(notification),
      onNotification: (listener) => (receive = listener),
    };
    const store = { countOthers: () => Promise.resolve(others) };
    const peers = new NotifiedPeers({
      store,
      notifications: hasRedis ? notifications : null,
      recent,
      clock,
      instanceId: 'one',
    });
    const reject = () => Promise.reject(new Error('not asked for'));
    const usage = { top: reject, topHours: reject };
    return new TopReports({ recent, day: { part: reject }, usage, peers, clock });
  }

  it('says without Redis how many are missing', async () => {
    const { instances } = await reports(2, false).report(QUERY);
    expect(instances).to.deep.equal({ included: 1, missing: 2 });
    expect(sent).to.deep.equal([]);
  });

  it('waits a second for those that do not answer, and ignores what comes later', async () => {
    const report = reports(2, true).report(QUERY);
    await eventually('it has asked', () => sent.length === 1);
    const [asked] = sent;
    if (asked?.kind !== 'top_wanted') throw new Error('it asked for something else');
    const counts = [5, 0, 0, 0, 0, 0, 0, 0];
    const part: TopPart = {
      fromMs: clock.now(),
      groups: [],
      groupCount: 0,
      untracked: 0,
      total: { counts, times: [] },
    };
    receive({ kind: 'top_part', number: asked.number, part });
    receive({ kind: 'top_part', number: asked.number + 1, part });
    clock.advance(1_000);
    const { instances, total } = await report;
    expect(instances).to.deep.equal({ included: 2, missing: 1 });
    expect(total.counts[0]).to.equal(5);
    receive({ kind: 'top_part', number: asked.number, part });
  });
});
