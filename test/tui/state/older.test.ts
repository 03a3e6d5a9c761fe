/** A daemon of an older release, whose responses lack fields of this one. */
import { expect } from 'chai';
import { NOT_REPORTED } from '../../../daemon/api/formats.js';
import { plainLines } from '../screens/rendering.js';
import type { Action, DataRequest } from '../../../tui/state/exchange.js';
import { TABS } from '../../../tui/state/state.js';
import { Operator } from '../operator.js';
import { record, REFUSED, SimulatedDaemon, token } from '../simulated.js';
import { aWireProject, aWireToken } from '../../support/factories.js';

/** A daemon whose responses all lack one field, at any depth. */
class OlderDaemon extends SimulatedDaemon {
  readonly #field: string;
  lacked = 0;

  constructor(field: string) {
    super({
      tokens: [token(0, { last_used_at: null }), token(1, { max_requests: 10 }), token(2, { is_active: false })],
    });
    this.#field = field;
    this.records = [record(0, { action: 'token.create' }), record(1)];
  }

  override data(request: DataRequest): Action {
    const action = super.data(request);
    return action.on === 'loaded' ? ({ ...action, data: this.#without(action.data) } as Action) : action;
  }

  #without(it: unknown): unknown {
    if (Array.isArray(it)) return it.map((item) => this.#without(item));
    if (typeof it !== 'object' || it === null) return it;
    if (this.#field in it) this.lacked++;
    const rest = Object.entries(it).filter(([name]) => name !== this.#field || name === 'items');
    return Object.fromEntries(rest.map(([name, value]) => [name, this.#without(value)]));
  }
}

const FIELDS_OF_STATUS =
  'status missing degraded version instance started_at uptime_s database driver schema pending_migrations redis event_bus kind buffered published dropped lag audit records failures projects tokens counted_at requests in_flight per_second errors_per_second cache backend hit_ratio upstream p50_ms p95_ms';
const FIELDS_OF_LISTS =
  'hits entries bytes misses time action actor outcome token_id request_id client_ip reason count details';
// Items of a list are identified by their id.
const FIELDS_OF_PROJECTS_AND_TOKENS = Object.keys({ ...aWireProject(), ...aWireToken() }).filter((it) => it !== 'id');
const FIELDS = [...`${FIELDS_OF_STATUS} ${FIELDS_OF_LISTS}`.split(' '), ...FIELDS_OF_PROJECTS_AND_TOKENS];

describe('older daemon', () => {
  for (const field of FIELDS) {
    it(`without the field ${field} is shown on every screen (finding A17)`, () => {
      const daemon = new OlderDaemon(field);
      const operator = new Operator({ daemon });
      const look = () => {
        for (const [columns, rows] of [
          [80, 24],
          [160, 50],
        ] as const) {
          const seen = plainLines(operator.resizes(columns, rows).state).join('\n');
          expect(seen).to.not.match(/undefined|NaN|\[object/);
        }
      };
      look();
      for (const at of TABS.keys()) {
        operator.press(String(at + 1)).passes(2_000);
        look();
        operator.press('enter');
        look();
        operator.press('escape', 'j', 'k');
      }
      operator.press('2', 'g', 'enter');
      look();
      operator.press('2', 'ctrl+a', 'x');
      look();
      expect(daemon.lacked, 'it was in an answer').to.be.greaterThan(0);
    });
  }

  it('is reported with its release (finding A17)', () => {
    const operator = new Operator({ daemon: new OlderDaemon('requests'), tab: 'overview' });
    const seen = plainLines(operator.passes(8_000).state);
    expect(seen.at(-2)).to.contain(
      `! the daemon is llmp 1.0.0, an older release; missing values are shown as ${NOT_REPORTED}`,
    );
    expect(seen.join('\n')).to.match(/— requests\/s/);
  });

  it('without the order `live` is sorted by another one (finding A17) (finding A10)', () => {
    const daemon = new SimulatedDaemon({ tokens: [token(0), token(1)] });
    daemon.failing = (request) =>
      request.of === 'tokens' && request.query.sort?.endsWith('live')
        ? { ...REFUSED, status: 400, code: 'invalid_request', message: 'sort must be one of created_at, …' }
        : null;
    const operator = new Operator({ daemon });
    expect(operator.length).to.equal(2);
    expect(operator.says).to.equal('This daemon is older and cannot sort live tokens first');
    expect(operator.state.connection.is).to.equal('live');
  });
});
