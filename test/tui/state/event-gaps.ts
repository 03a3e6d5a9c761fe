import { expect } from 'chai';
import { request } from '../screens/screen-fixture.js';
import { Operator } from '../operator.js';
import { at, matchesQuery, REFUSED, SimulatedDaemon, token } from '../simulated.js';
import { seeded } from './walk.js';

const KEYS = ['6', '6', '2', 'e', 'e', 'p', 'k', 'k', 'g', 'G', 'enter', 'q', 'escape', 'ctrl+r'];

/** A terminal UI and a daemon whose events occur, are streamed and listed in a random order of things. */
class Watching {
  readonly operator: Operator;
  readonly #random: () => number;
  #occurred = 0;
  /** Whether the stream that is followed is open. */
  #isOpen = false;

  constructor(seed: number) {
    this.#random = seeded(seed);
    const daemon = new SimulatedDaemon({ tokens: [token(1)] });
    this.operator = new Operator({ daemon, tab: 'events' });
    this.#occur(500);
  }

  step(): void {
    const { operator } = this;
    const dice = this.#random();
    const stream = operator.followed[0];
    if (dice < 0.4) operator.press(KEYS[Math.floor(this.#random() * KEYS.length)] ?? '6');
    else if (dice < 0.65) this.#occur(Math.floor(this.#random() ** 4 * 900));
    else if (dice < 0.75) operator.isHeld = !operator.isHeld;
    else if (dice < 0.8) operator.daemon.failing = ({ of }) => (of === 'events' ? REFUSED : null);
    else if (dice < 0.85) operator.daemon.failing = () => null;
    else if (dice < 0.95) operator.passes(3_000);
    else this.#isOpen = false;
    if (!operator.isHeld) operator.hears();
    // A stream that is new, or was lost, opens after a while, and begins with the next event.
    const isNew = JSON.stringify(operator.followed[0]) !== JSON.stringify(stream);
    if (operator.followed.length === 0 || isNew) this.#isOpen = false;
    else if (!this.#isOpen && dice >= 0.95) operator.acts({ on: 'stream', of: 'events', is: 'lost', failure: null });
    else if (!this.#isOpen && this.#random() < 0.5) this.#open();
  }

  #open(): void {
    this.#isOpen = true;
    this.operator.acts({ on: 'stream', of: 'events', is: 'open', failure: null });
  }

  #occur(count: number): void {
    const { daemon, followed } = this.operator;
    const events = Array.from({ length: count }, (_, n) => {
      const index = this.#occurred + n;
      return request(index, { time: at(index), outcome: index % 9 === 0 ? 'upstream_error' : 'ok' });
    });
    this.#occurred += count;
    daemon.events.push(...events);
    const [stream] = followed;
    if (!this.#isOpen || stream?.of !== 'events') return;
    const items = events.filter((event) => matchesQuery(event, stream.query));
    this.operator.acts({ on: 'streamed', streamed: items.map((item) => ({ of: 'events', item })) });
  }

  /** Everything works, and the events screen is shown. */
  settle(isFiltered: boolean): void {
    const { operator } = this;
    operator.daemon.failing = () => null;
    operator.isHeld = false;
    operator.hears();
    if (operator.state.isPaused) operator.press('p');
    operator.press('6');
    if ((operator.state.events.filter !== '') !== isFiltered) operator.press('e');
    operator.passes(3_000);
    this.#open();
  }
}

/** Checks that the events are shown without a gap at the end of a random history. */
export function showsNoGap(seed: number): void {
  const watching = new Watching(seed);
  for (let steps = 0; steps < 60; steps++) watching.step();
  const isFiltered = seed % 2 === 0;
  watching.settle(isFiltered);
  const { items, isKnown } = watching.operator.state.events;
  expect(isKnown, `seed ${seed}`).to.equal(true);
  const { events } = watching.operator.daemon;
  const matching = events.filter((event) => !isFiltered || ('outcome' in event && event.outcome !== 'ok'));
  const wanted = matching.slice(-items.length).map(({ id }) => id);
  expect(items.length, `seed ${seed}`).to.be.at.least(Math.min(10, matching.length));
  expect(
    items.map(({ id }) => id),
    `seed ${seed}`,
  ).to.deep.equal(wanted);
}
