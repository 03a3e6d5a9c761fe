/** Store of the terminal UI: applies actions to the state one at a time, and runs the effects that each one returns. */
import { key, paste } from './keys/press.js';
import { mouse } from './pointing.js';
import type { Action, Effect } from './state/exchange.js';
import type { State } from './state/state.js';
import { type Press, update } from './state/update.js';

/** All input of the operator: keys, pastes and the mouse. */
export const INPUT: Press = { key, paste, mouse };

export interface StoreOptions {
  state: State;
  now: () => number;
  run: (effect: Effect) => void;
  changed: (state: State) => void;
}

export class Store {
  #state: State;
  readonly #options: StoreOptions;
  readonly #waiting: Action[] = [];
  #isBusy = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#state = options.state;
  }

  get state(): State {
    return this.#state;
  }

  /** An effect may dispatch an action synchronously. It is queued until the current action is done. */
  act(action: Action): void {
    this.#waiting.push(action);
    if (this.#isBusy) return;
    this.#isBusy = true;
    const before = this.#state;
    try {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        const [state, ...effects] = update(this.#state, { ...next, atMs: this.#options.now() }, INPUT);
        this.#state = state;
        for (const effect of effects) this.#options.run(effect);
      }
    } finally {
      this.#isBusy = false;
    }
    if (this.#state !== before) this.#options.changed(this.#state);
  }
}
