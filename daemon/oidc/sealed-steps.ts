/**
 * What a log-in needs later, sealed for its browser or command line to hold. So nothing is stored until a session begins, and any instance
 * can end a log-in that another one began.
 */
import { hkdfSync } from 'node:crypto';
import { sealed, unsealed } from '../core/sealing.js';

const KEY_BYTES = 32;

export class SealedSteps {
  readonly #key: Buffer;
  readonly #clock: { now(): number };

  /** @param managementToken the key is derived from it, so that all instances have the same. */
  constructor(managementToken: string, clock: { now(): number }) {
    this.#key = Buffer.from(hkdfSync('sha256', managementToken, '', 'llmp oidc seal', KEY_BYTES));
    this.#clock = clock;
  }

  /** @param kind of the step: as another kind it cannot be opened. @returns base64url. */
  seal(kind: string, step: object, lastsMs: number): string {
    const text = JSON.stringify({ ...step, endsAtMs: this.#clock.now() + lastsMs });
    return Buffer.concat(sealed(this.#key, Buffer.from(kind), [Buffer.from(text)])).toString('base64url');
  }

  /** @returns null if it was not sealed as this kind under the same management token, was modified, or has ended. */
  open(kind: string, text: string): unknown {
    const plain = unsealed(this.#key, Buffer.from(kind), Buffer.from(text, 'base64url'));
    if (plain === null) return null;
    const step = JSON.parse(plain.toString()) as { endsAtMs: number };
    return this.#clock.now() < step.endsAtMs ? step : null;
  }
}
