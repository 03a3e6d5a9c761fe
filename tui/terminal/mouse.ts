/** Reports of the mouse in SGR mode (1006): `CSI < button ; column ; row`, then `M` for a press and `m` for a release. */

export interface MouseInput {
  kind: 'mouse';
  what: 'click' | 'wheelup' | 'wheeldown';
  /** From 0. */
  column: number;
  row: number;
}

/** Reports of presses and of the wheel. */
export const MOUSE_ON = '\x1b[?1000h\x1b[?1006h';

const REPORT = /^<(\d{1,4});(\d{1,5});(\d{1,5})$/;
// Bits of the button: Shift, Alt and Ctrl are ignored.
const MODIFIERS = 4 | 8 | 16;
const WHAT: Readonly<Record<number, MouseInput['what']>> = { 0: 'click', 64: 'wheelup', 65: 'wheeldown' };

/** @param text the parameters. @returns undefined for releases, movements, other buttons, and what is no report. */
export function mouseInput(text: string, final: string): MouseInput | undefined {
  const [, button, column, row] = REPORT.exec(text) ?? [];
  const what = WHAT[Number(button) & ~MODIFIERS];
  if (final !== 'M' || button === undefined || what === undefined) return undefined;
  return { kind: 'mouse', what, column: Math.max(0, Number(column) - 1), row: Math.max(0, Number(row) - 1) };
}
