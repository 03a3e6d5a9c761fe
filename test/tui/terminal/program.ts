/** A full-screen test program. `--mouse` turns on the mouse. Keys: `q` quits, `x` crashes; the screen lists the others. */
import { terminalIo } from '../../../console/terminal-io.js';
import type { Input } from '../../../tui/terminal/keys.js';
import { openTerminal } from '../../../tui/terminal/terminal.js';
import { screen } from './program-screen.js';
import { SECRET } from './program-secret.js';

const terminal = openTerminal(terminalIo(process), {
  hasMouse: process.argv.includes('--mouse'),
  mask: (text) => text.replaceAll(SECRET, '********').replaceAll('\x1b', '\\x1b'),
});

const heard: string[] = [];
let resizes = 0;
let ticks = 0;

function show(): void {
  const { size, capabilities } = terminal;
  terminal.show(() => screen({ size, heard, resizes, ticks, capabilities }));
}

const actions: Record<string, () => void> = {
  q: () => {
    terminal.close();
  },
  '7': () => {
    terminal.close(7);
  },
  'ctrl+c': () => {
    terminal.close(130);
  },
  'ctrl+z': () => {
    terminal.suspend();
  },
  'ctrl+l': () => {
    terminal.repaint();
  },
  y: () => {
    void terminal.copy('copied text');
  },
  x: () => {
    throw new Error(`it broke with ${SECRET}`);
  },
  r: () => {
    void Promise.reject(new Error(`it was rejected with ${SECRET}`));
  },
  b: () => {
    terminal.show(() => {
      throw new Error(`cannot be laid out with ${SECRET}`);
    });
  },
  w: () => {
    console.log('stray words');
    console.error('stray words on the error output');
  },
  t: () => {
    ticks++;
  },
  T: () => {
    setInterval(() => {
      ticks++;
      terminal.repaint();
      show();
    }, 5).unref();
  },
  E: () => {
    process.exit(3);
  },
};

function wordsOf(input: Input): string {
  if (input.kind === 'mouse') return `${input.what} at ${input.column},${input.row}`;
  return input.kind === 'key' ? input.key : `paste of ${input.text.length}: ${input.text.slice(0, 20)}`;
}

terminal.onInput((input) => {
  heard.push(wordsOf(input));
  show();
  if (input.kind === 'key') actions[input.key]?.();
  if (input.kind === 'key' && input.key === 't') show();
});
terminal.onResize(() => {
  resizes++;
  show();
});
show();
process.exitCode = await terminal.ended;
