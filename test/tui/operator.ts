/** A simulated operator of the terminal UI without a terminal: presses keys, waits and reads the state. Time passes only on request. */
import type { WireToken } from '../../daemon/api/contract.js';
import { bindingsOn, keyScopeOf } from '../../tui/keys/press.js';
import { initialState, type InitialStateOptions } from '../../tui/state/initial-state.js';
import { actionAt, focused, valueOf } from '../../tui/state/dialog.js';
import type { Action, Effect, Target, DataRequest, Stream, Wake } from '../../tui/state/exchange.js';
import type { Dialog, Label, Layer } from '../../tui/state/layers.js';
import { layer, type State, type Tab, view } from '../../tui/state/state.js';
import { update } from '../../tui/state/update.js';
import { cursorRow, lengthOf, rowAt } from '../../tui/state/window.js';
import { INPUT } from '../../tui/store.js';
import { SimulatedDaemon, START_MS } from './simulated.js';

export const PLACE: Target = {
  server: '127.0.0.1:8080',
  context: null,
  color: null,
  isProtected: false,
  isReadonly: false,
  project: null,
};

export interface Beginning {
  daemon?: SimulatedDaemon;
  place?: Partial<Target>;
  tab?: Tab;
  rows?: number;
  /** What the operator's settings say. */
  settings?: Pick<InitialStateOptions, 'customKeys' | 'skins' | 'commandHistory' | 'saved' | 'quitEnds'>;
}

export class Operator {
  readonly daemon: SimulatedDaemon;
  state: State;
  nowMs = START_MS;
  /** All effects so far, the latest last. */
  readonly effects: Effect[] = [];
  followed: readonly Stream[] = [];
  /** Whether responses are held back until `hears`. */
  isHeld = false;
  #onTheWay = new Map<string, () => Action>();
  #wakes = new Map<Wake, number>();

  constructor({ daemon = new SimulatedDaemon(), place = {}, tab = 'tokens', rows = 24, settings }: Beginning = {}) {
    this.daemon = daemon;
    this.state = initialState({
      size: { columns: 100, rows },
      look: { ascii: false, hasColor: true, isStill: false },
      target: { ...PLACE, ...place },
      nowMs: this.nowMs,
      tab,
      refreshMs: 2_000,
      ...settings,
    });
    this.acts({ on: 'began' });
  }

  press(...keys: string[]): this {
    for (const key of keys) this.acts({ on: 'key', key });
    return this;
  }

  types(text: string): this {
    for (const { segment } of new Intl.Segmenter().segment(text)) this.press(segment === ' ' ? 'space' : segment);
    return this;
  }

  /** Moves to the field with that label. */
  goesTo(label: Label): this {
    return this.#tabsUntil(label, () => this.field === label);
  }

  /** Replaces the text of a field. */
  fills(label: Label, text: string): this {
    return this.goesTo(label).press('ctrl+u').types(text);
  }

  /** Presses the action button of the dialog. */
  submits(): this {
    return this.#tabsUntil('the button', () => this.dialog.focus === actionAt(this.dialog)).press('enter');
  }

  #tabsUntil(what: string, isThere: () => boolean): this {
    for (let tabs = this.dialog.fields.length + 2; !isThere(); tabs--) {
      if (tabs === 0) throw new Error(`nowhere in the dialog is ${what}`);
      this.press('tab');
    }
    return this;
  }

  pastes(text: string): this {
    return this.acts({ on: 'paste', text });
  }

  resizes(columns: number, rows: number): this {
    return this.acts({ on: 'resized', columns, rows });
  }

  acts(action: Action): this {
    const [state, ...effects] = update(this.state, { ...action, atMs: this.nowMs }, INPUT);
    this.state = state;
    for (const effect of effects) this.#carryOut(effect);
    return this.isHeld ? this : this.hears();
  }

  /** Delivers all responses in flight, and those to requests that follow. */
  hears(): this {
    for (let round = 0; this.#onTheWay.size > 0; round++) {
      if (round > 200) throw new Error('it asks for ever');
      const arriving = [...this.#onTheWay.values()];
      this.#onTheWay.clear();
      const wasHeld = this.isHeld;
      this.isHeld = true;
      for (const arrive of arriving) this.acts(arrive());
      this.isHeld = wasHeld;
    }
    return this;
  }

  /** Drops all responses in flight. */
  loses(): this {
    this.#onTheWay.clear();
    return this;
  }

  passes(ms: number): this {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const [next] = [...this.#wakes].sort(([, one], [, other]) => one - other);
      if (!next || next[1] > untilMs) break;
      this.#wakes.delete(next[0]);
      this.nowMs = Math.max(this.nowMs, next[1]);
      this.acts({ on: 'woke', name: next[0] });
    }
    this.nowMs = untilMs;
    return this;
  }

  /** The latest effect of a kind. */
  did<K extends Effect['do']>(what: K): Extract<Effect, { do: K }> | undefined {
    return this.effects.findLast((effect): effect is Extract<Effect, { do: K }> => effect.do === what);
  }

  /** Number of requests of a kind since `forgets`. */
  asked(of: DataRequest['of']): number {
    return this.effects.filter((effect) => effect.do === 'load' && effect.request.of === of).length;
  }

  forgets(): this {
    this.effects.length = 0;
    return this;
  }

  get wakes(): ReadonlyMap<Wake, number> {
    return this.#wakes;
  }
  get says(): string | undefined {
    return this.state.message?.words;
  }
  get screen(): string {
    return view(this.state).screen;
  }
  get top(): Layer | undefined {
    return layer(this.state);
  }
  get dialog(): Dialog {
    const { top } = this;
    if (top?.kind !== 'dialog') throw new Error(`no dialog but ${top?.kind ?? 'nothing'}; ${this.says ?? ''}`);
    return top;
  }
  value(label: Label): string {
    return valueOf(this.dialog, label);
  }
  /** The focused field; undefined on a button. */
  get field(): Label | undefined {
    return focused(this.dialog)?.label;
  }
  /** The token under the cursor. */
  get cursor(): WireToken | undefined {
    return cursorRow(this.state.tokens.window);
  }
  get length(): number {
    return lengthOf(this.state.tokens.window);
  }
  rowAt(index: number): WireToken | undefined {
    return rowAt(this.state.tokens.window, index);
  }
  get marks(): string[] {
    return [...this.state.tokens.marks.keys()];
  }
  /** Keys in the footer. */
  get footer(): string[] {
    return bindingsOn(keyScopeOf(this.state), this.state)
      .filter(({ footer }) => footer !== undefined)
      .map(({ keys: [first = ''] }) => first);
  }

  #carryOut(effect: Effect): void {
    this.effects.push(effect);
    switch (effect.do) {
      case 'load':
        // A request in flight is not sent again.
        this.#onTheWay.set(JSON.stringify(effect.request), () => this.daemon.data(effect.request));
        return;
      case 'change':
        this.#onTheWay.set(`change ${this.effects.length}`, () => this.daemon.make(effect.change, effect.reason));
        return;
      case 'wake':
        this.#wakes.set(effect.name, this.nowMs + effect.afterMs);
        return;
      case 'follow':
        this.followed = effect.streams;
    }
  }
}
