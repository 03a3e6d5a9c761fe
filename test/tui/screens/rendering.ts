/** Renders frames with Ink, before they are cut to the size of a terminal. */
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { render } from 'ink';
import { frameOf } from '../../../tui/frame.js';
import type { State } from '../../../tui/state/state.js';

class Screen extends EventEmitter {
  readonly columns: number;
  readonly rows: number;
  readonly isTTY = true;
  frame = '';
  constructor(columns: number, rows: number) {
    super();
    this.columns = columns;
    this.rows = rows;
  }
  write(frame: string): boolean {
    if (!/^(?:\x1b\[\?\d+[hl])+$/.test(frame)) this.frame = frame; // eslint-disable-line no-control-regex
    return true;
  }
}

/** The lines of a state, with their colours. */
export function frameLines(state: State): string[] {
  const screen = new Screen(state.size.columns, state.size.rows);
  const stdin = Object.assign(new Readable({ read: () => undefined }), { isTTY: false });
  const instance = render(frameOf(state), {
    stdout: screen as unknown as NodeJS.WriteStream,
    stdin: stdin as unknown as NodeJS.ReadStream,
    debug: true,
    exitOnCtrlC: false,
    patchConsole: false,
    isScreenReaderEnabled: true,
  });
  const { frame } = screen;
  instance.unmount();
  return frame.split('\n');
}

export const withoutColors = (line: string) => line.replace(/\x1b\[[\d;]*m/g, ''); // eslint-disable-line no-control-regex

/** The screen as plain text. */
export const screenText = (state: State): string => frameLines(state).map(withoutColors).join('\n');
