import { expect } from 'chai';
import type { Streamed } from '../../../tui/state/exchange.js';
import { seededRandom } from '../../support/model.js';
import { request } from '../screens/screen-fixture.js';
import { Operator } from '../operator.js';
import { at, matchesQuery, record, REFUSED, SimulatedDaemon, token } from '../simulated.js';

const KEYS = ['2', 'p', 'k', 'k', 'g', 'G', 'enter', 'q', 'escape', 'ctrl+r'];
/** The key of the screen, and those that only it has. */
const OWN_KEYS = { audit: ['4', '4'], events: ['6', '6', 'e', 'e'] };

/** A terminal UI and a daemon whose events or records occur, are streamed and listed in a random order of things. */
class Watching {
  readonly operator: Operator;
  readonly #of: 'audit' | 'events';
  readonly #random: () => number;
  #occurred = 0;
  /** Whether the stream that is followed is open. */
  #isOpen = false;

  constructor(of: 'audit' | 'events', seed: number) {
    this.#of = of;
    this.#random = seededRandom(seed);
    const daemon = new SimulatedDaemon({ tokens: [token(1)] });
    this.operator = new Operator({ daemon, tab: of });
    this.#occur(500);
  }

  step(): void {
    const { operator } = this;
    const dice = this.#random();
    const of = this.#of;
    const stream = operator.followed[0];
    const keys = [...KEYS, ...OWN_KEYS[of]];
    if (dice < 0.4) operator.press(keys[Math.floor(this.#random() * keys.length)] ?? '2');
    else if (dice < 0.65) this.#occur(Math.floor(this.#random() ** 4 * 900));
    else if (dice < 0.75) operator.isHeld = !operator.isHeld;
    else if (dice < 0.8) operator.daemon.failing = (request) => (request.of === of ? REFUSED : null);
    else if (dice < 0.85) operator.daemon.failing = () => null;
    else if (dice < 0.95) operator.passes(3_000);
    else this.#isOpen = false;
    if (!operator.isHeld) operator.hears();
    // A stream that is new, or was lost, opens after a while, and begins with the next event.
    const isNew = JSON.stringify(operator.followed[0]) !== JSON.stringify(stream);
    if (operator.followed.length === 0 || isNew) this.#isOpen = false;
    else if (!this.#isOpen && dice >= 0.95) operator.acts({ on: 'stream', of, is: 'lost', failure: null });
    else if (!this.#isOpen && this.#random() < 0.5) this.#open();
  }

  #open(): void {
    this.#isOpen = true;
    this.operator.acts({ on: 'stream', of: this.#of, is: 'open', failure: null });
  }

  #occur(count: number): void {
    const { daemon, followed } = this.operator;
    const indexes = Array.from({ length: count }, (_, n) => this.#occurred + n);
    this.#occurred += count;
    const events = indexes.map((index) =>
      request(index, { time: at(index), outcome: index % 9 === 0 ? 'upstream_error' : 'ok' }),
    );
    const records = indexes.map((index) => record(index));
    daemon.events.push(...events);
    daemon.records.push(...records);
    const [stream] = followed;
    if (!this.#isOpen || stream?.of !== this.#of) return;
    const streamed: Streamed[] =
      stream.of === 'audit'
        ? records.map((item) => ({ of: 'audit', item }))
        : events.flatMap((item) => (matchesQuery(item, stream.query) ? [{ of: 'events', item }] : []));
    this.operator.acts({ on: 'streamed', streamed });
  }

  /** Everything works, and the screen is shown. */
  settle(isFiltered: boolean): void {
    const { operator } = this;
    operator.daemon.failing = () => null;
    operator.isHeld = false;
    operator.hears();
    if (operator.state.isPaused) operator.press('p');
    operator.press(OWN_KEYS[this.#of][0] ?? '');
    if ((operator.state[this.#of].filter !== '') !== isFiltered) operator.press('e');
    operator.passes(3_000);
    this.#open();
  }
}

/** Checks that events or records are shown without a gap at the end of a random history. */
export function showsNoGap(of: 'audit' | 'events', seed: number): void {
  const watching = new Watching(of, seed);
  for (let steps = 0; steps < 60; steps++) watching.step();
  const isFiltered = of === 'events' && seed % 2 === 0;
  watching.settle(isFiltered);
  const { items, isKnown } = watching.operator.state[of];
  expect(isKnown, `seed ${seed}`).to.equal(true);
  const { events, records } = watching.operator.daemon;
  const all = of === 'audit' ? records : events;
  const matching = all.filter((it) => !isFiltered || ('outcome' in it && it.outcome !== 'ok'));
  const wanted = matching.slice(-items.length).map(({ id }) => id);
  expect(items.length, `seed ${seed}`).to.be.at.least(Math.min(10, matching.length));
  expect(
    items.map(({ id }) => id),
    `seed ${seed}`,
  ).to.deep.equal(wanted);
}
