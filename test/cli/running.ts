import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { type Captured, llmp, type Situation } from './captured.js';

/** Runs a command that continues until ^C. */
export class Running {
  out = '';
  err = '';
  #press: (value?: unknown) => void = () => undefined;
  readonly #captured: Promise<Captured>;

  constructor(url: string, args: string, situation: Situation = {}) {
    this.#captured = llmp(args, {
      env: { LLMP_SERVER: url, MANAGEMENT_TOKEN },
      onOut: (text) => (this.out += text),
      onErr: (text) => (this.err += text),
      interrupted: new Promise((resolve) => (this.#press = resolve)),
      ...situation,
    });
  }

  press(): Promise<Captured> {
    this.#press();
    return this.#captured;
  }
}
