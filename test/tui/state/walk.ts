import { expect } from 'chai';
import type { WireEvent } from '../../../daemon/api/contract.js';
import type { Action, Failure, DataRequest } from '../../../tui/state/exchange.js';
import { BINDINGS } from '../../../tui/keys/press.js';
import { layer, type State, TABS } from '../../../tui/state/state.js';
import { lengthOf } from '../../../tui/state/window.js';
import { seededRandom } from '../../support/model.js';
import { Operator } from '../operator.js';
import { request } from '../screens/screen-fixture.js';
import {
  at,
  DENIED,
  matchesQuery,
  project,
  record,
  REFUSED,
  SimulatedDaemon,
  token,
  UNREACHABLE,
} from '../simulated.js';

// Keys that end the program would end the walk, so they are excluded.
const KEYS = [...new Set(BINDINGS.flatMap(({ keys }) => keys)), 'b', 'e', '7', 'é', '漢'].filter(
  (key) => key !== 'ctrl+c',
);
// Random keys alone seldom complete a dialog.
const MEANT = [
  'escape escape escape 2 x tab enter',
  'escape escape escape 2 ctrl+a x tab enter escape',
  'escape escape escape 2 space v j j v a tab enter',
  'escape escape escape 2 n enter enter enter enter enter v enter',
  'escape escape escape 3 d tab enter a u',
  'escape escape escape 3 enter x tab enter u',
  'escape escape escape 5 x up enter',
  'escape escape escape 6 e enter k k',
  'escape escape escape 6 G g g k',
  'escape escape escape 2 f enter',
  'escape escape escape c j enter',
  'escape escape escape ctrl+r',
].map((keys) => keys.split(' '));
const FAILURES: readonly Failure[] = [
  UNREACHABLE,
  REFUSED,
  DENIED,
  { ...REFUSED, status: 429, retryAfterMs: 7_000 },
  { ...REFUSED, status: 400 },
  { ...REFUSED, status: 404 },
];

class Walk {
  readonly #random: () => number;
  readonly operator: Operator;
  #made = 200;
  /** Number of events so far. */
  #occurred = 900;
  /** The next keys of a deliberate sequence. */
  #meant: string[] = [];

  constructor(seed: number, isReadonly: boolean) {
    this.#random = seededRandom(seed);
    const daemon = new SimulatedDaemon({
      tokens: Array.from({ length: 200 }, (_, index) => token(index, { is_active: index % 3 > 0 })),
      projects: [project('web'), project('two words'), project('off', { is_active: false })],
    });
    daemon.records = Array.from({ length: 500 }, (_, index) => record(index));
    daemon.events = Array.from({ length: 900 }, (_, index) => this.#event(index));
    daemon.searchedPerPage = 200;
    daemon.contexts = [
      { name: 'here', server: 'x', isCurrent: true, isProtected: false, isReadonly, color: null },
      { name: 'prod', server: 'y', isCurrent: false, isProtected: true, isReadonly, color: 'red' },
    ];
    this.operator = new Operator({ daemon, place: { isReadonly }, rows: 20 });
  }

  #one<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T;
  }

  step(): string {
    const { operator } = this;
    const dice = this.#random();
    if (this.#meant.length > 0 || dice < 0.75) {
      if (dice < 0.05) this.#meant = [...this.#one(MEANT)];
      const key = this.#meant.shift() ?? this.#one(KEYS);
      operator.press(key);
      return `press ${key}`;
    }
    if (dice < 0.8) return this.#world();
    if (dice < 0.84) {
      operator.isHeld = !operator.isHeld;
      return operator.isHeld ? 'held' : (operator.hears(), 'heard');
    }
    if (dice < 0.86) {
      const [columns, rows] = [Math.floor(this.#random() * 300) + 1, Math.floor(this.#random() * 60) + 1];
      operator.resizes(columns, rows);
      return `resized ${columns}x${rows}`;
    }
    if (dice < 0.88) {
      operator.pastes(this.#one(['web', 'state:', '\u001b[2J', 'two\nlines\n', '"', 'x'.repeat(5_000)]));
      return 'pasted';
    }
    if (dice < 0.92) return this.#stray();
    const ms = Math.floor(this.#random() ** 3 * 40_000);
    operator.passes(ms);
    return `passed ${ms}`;
  }

  /** Other operators change data, and requests fail. */
  #world(): string {
    const { daemon } = this.operator;
    const failure = this.#one([null, null, null, null, null, null, ...FAILURES]);
    const of = this.#one<DataRequest['of'] | 'all'>([
      'all',
      'tokens',
      'status',
      'allTokens',
      'token',
      'audit',
      'events',
      'projects',
    ]);
    daemon.failing = (request) => (of === 'all' || request.of === of ? failure : null);
    daemon.refusing = this.#one([null, null, UNREACHABLE, REFUSED]);
    daemon.tokens.splice(Math.floor(this.#random() * daemon.tokens.length), 1);
    daemon.tokens.push(token(this.#made++));
    daemon.records.push(record(this.#made));
    for (let count = Math.floor(this.#random() ** 4 * 800); count > 0; count--) this.#occurs(daemon);
    return `failing ${of} ${failure?.status ?? failure?.kind ?? 'not'}`;
  }

  /** An event that the daemon stores and streams. */
  #occurs(daemon: SimulatedDaemon): void {
    const event = this.#event(this.#occurred++);
    daemon.events.push(event);
    const stream = this.operator.followed.find(({ of }) => of === 'events');
    if (stream?.of === 'events' && matchesQuery(event, stream.query))
      this.operator.acts({ on: 'streamed', streamed: [{ of: 'events', item: event }] });
  }

  #event(index: number): WireEvent {
    const failure = index % 7 === 0 ? ({ status: 502, outcome: 'upstream_error' } as const) : {};
    return request(index, { time: at(index), token_id: token(index % 200).id, ...failure });
  }

  /** Unexpected or late actions. */
  #stray(): string {
    const { operator } = this;
    const strays: Action[] = [
      { on: 'progress', words: 'Revoking', done: 3, of: 9 },
      { on: 'streamed', streamed: [{ of: 'events', item: this.#event(Math.floor(this.#random() * this.#occurred)) }] },
      { on: 'streamed', streamed: [{ of: 'audit', item: record(Math.floor(this.#random() * 900)) }] },
      {
        on: 'stream',
        of: this.#one(['audit', 'events', 'tokenEvents']),
        is: this.#one(['open', 'lost']),
        failure: null,
      },
      { on: 'heard', skewMs: this.#one([null, 90_000, -90_000]) },
      { on: 'notConnected', context: 'prod', failure: UNREACHABLE },
      { on: 'copied', what: 'The ID', to: 'terminal' },
      { on: 'written', path: '/a' },
      { on: 'notWritten', path: '/a', why: 'EACCES' },
      { on: 'woke', name: this.#one(['filter', 'refresh', 'second']) },
    ];
    if (operator.state.switchingTo !== null) {
      operator.loses();
      strays.splice(0, Infinity, { on: 'connected', target: { ...operator.state.target, context: 'prod' } });
    }
    const stray = this.#one(strays);
    operator.acts(stray);
    return `stray ${stray.on}`;
  }
}

function holds({ state, effects, wakes }: Operator, before: State, step: string): void {
  const { window } = state.tokens;
  expect(state.views.length, 'views').to.be.within(1, 4);
  expect(TABS).to.include(state.views[0]?.screen);
  expect(window.cursorIndex, 'cursor').to.be.within(0, Math.max(0, lengthOf(window) - 1));
  for (const [id, marked] of state.tokens.marks) expect(marked.id).to.equal(id);
  expect(state.tokens.rateBaselines.size).to.be.at.most(2_000);
  for (const feed of [state.audit, state.events]) {
    expect(feed.items.length, 'feed').to.be.at.most(5_200);
    const isThere = feed.items.some(({ id }) => id === feed.cursorId);
    const times = feed.items.map(({ time }) => time);
    expect(times, 'order of a feed').to.deep.equal([...times].sort());
    expect(feed.filteredOut.length, 'hidden items').to.be.at.most(1_000);
    if (feed === state.events) expect(feed.isReadingOlder, 'search').to.equal(feed.search !== null);
    expect(isThere || (feed.items.length === 0 && feed.cursorId === null), 'cursor of a feed').to.equal(true);
  }
  for (const top of state.layers) {
    if (top.kind === 'dialog') expect(top.focus, 'focus').to.be.within(0, top.fields.length + 1);
    if (top.kind === 'prompt' || top.kind === 'command') {
      expect(top.line.caret, 'caret').to.be.within(0, top.line.text.length);
      expect(top.line.text.length).to.be.at.most(4_096);
    }
  }
  expect(wakes.size, 'wakes').to.be.at.most(3);
  for (const effect of effects) {
    if (effect.do !== 'change') continue;
    expect(before.target.isReadonly, 'read-only').to.equal(false);
    const isOfDialog = layer(before)?.kind === 'dialog' && ['press enter', 'press ctrl+s'].includes(step);
    const { change } = effect;
    const isUndo = effect.reason === 'undo';
    const isBack = change.what === 'reactivate' && change.tokens.length === 1;
    const isOn = change.what === 'update-project' && change.body.is_active === true;
    expect(isOfDialog || isUndo || isBack || isOn, `${change.what} without a request`).to.equal(true);
  }
}

/** A random walk that checks the invariants after each step. @returns the end of the walk. */
export function walked(seed: number, isReadonly: boolean, steps: number): Operator {
  const walk = new Walk(seed, isReadonly);
  const lately: string[] = [];
  for (let at = 0; at < steps; at++) {
    const before = walk.operator.forgets().state;
    try {
      const step = walk.step();
      lately.push(step);
      holds(walk.operator, before, step);
    } catch (error) {
      throw new Error(`at step ${at}, after ${lately.slice(-12).join(', ')}`, { cause: error });
    }
  }
  return walk.operator;
}
