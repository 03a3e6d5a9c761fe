import { expect } from 'chai';
import { type Input, KeyDecoder, MAX_PASTE_BYTES } from '../../../tui/terminal/keys.js';
import { TestClock } from '../../support/clock.js';
import { type Random, seededRandom } from '../../support/model.js';

/** A keyboard with a decoder, and the decoded input. */
class Keyboard {
  readonly clock = new TestClock({ standsStill: true });
  readonly told: Input[] = [];
  readonly #decoder = new KeyDecoder(this.clock, (input) => this.told.push(input));

  /** Sends each argument as one read. */
  send(...reads: (string | Uint8Array)[]): this {
    for (const read of reads) this.#decoder.push(Buffer.from(read as string));
    return this;
  }

  waits(ms: number): this {
    this.clock.advance(ms);
    return this;
  }

  get keys(): string[] {
    return this.told.map((input) => {
      if (input.kind === 'mouse') return `${input.what}@${input.column},${input.row}`;
      return input.kind === 'key' ? input.key : `paste:${input.text}`;
    });
  }
}

/** The input decoded from these bytes, after all timeouts. */
const told = (...reads: (string | Uint8Array)[]) => new Keyboard().send(...reads).waits(10_000).keys;

/** Bytes, and the key that they stand for. */
const KEYS: Record<string, readonly (readonly [string, string])[]> = {
  'a character': [
    ['j', 'j'],
    ['G', 'G'],
    ['?', '?'],
    [' ', 'space'],
    ['ä', 'ä'],
    ['日', '日'],
    ['🙂', '🙂'],
  ],
  'a control key': [
    ['\r', 'enter'],
    ['\n', 'enter'],
    ['\t', 'tab'],
    ['\x7f', 'backspace'],
    ['\x08', 'backspace'],
    ['\x1b', 'escape'],
    ['\x00', 'ctrl+space'],
    ['\x01', 'ctrl+a'],
    ['\x03', 'ctrl+c'],
    ['\x1a', 'ctrl+z'],
    ['\x1c', 'ctrl+\\'],
    ['\x1f', 'ctrl+_'],
  ],
  'Alt and another': [
    ['\x1bx', 'alt+x'],
    ['\x1bX', 'alt+X'],
    ['\x1bä', 'alt+ä'],
    ['\x1b ', 'alt+space'],
    ['\x1b\r', 'alt+enter'],
    ['\x1b\x7f', 'alt+backspace'],
    ['\x1b\x01', 'ctrl+alt+a'],
    ['\x1b[', 'alt+['],
    ['\x1bO', 'alt+O'],
    ['\x1b]', 'alt+]'],
    ['\x1bP', 'alt+P'],
  ],
  'a special key': [
    ['\x1b[A', 'up'],
    ['\x1b[B', 'down'],
    ['\x1b[C', 'right'],
    ['\x1b[D', 'left'],
    ['\x1b[H', 'home'],
    ['\x1b[F', 'end'],
    ['\x1b[1~', 'home'],
    ['\x1b[2~', 'insert'],
    ['\x1b[3~', 'delete'],
    ['\x1b[4~', 'end'],
    ['\x1b[5~', 'pageup'],
    ['\x1b[6~', 'pagedown'],
    ['\x1b[7~', 'home'],
    ['\x1b[8~', 'end'],
    ['\x1b[Z', 'shift+tab'],
    ['\x1bOA', 'up'],
    ['\x1bOH', 'home'],
    ['\x1bOF', 'end'],
    ['\x1bOP', 'f1'],
    ['\x1bOS', 'f4'],
    ['\x1b[11~', 'f1'],
    ['\x1b[15~', 'f5'],
    ['\x1b[17~', 'f6'],
    ['\x1b[21~', 'f10'],
    ['\x1b[23~', 'f11'],
    ['\x1b[24~', 'f12'],
    ['\x1b[[A', 'f1'],
    ['\x1b[[E', 'f5'],
    ['\x1bOM', 'enter'],
    ['\x1bOj', '*'],
    ['\x1bOp', '0'],
    ['\x1bOy', '9'],
  ],
  'a special key with others, as xterm has it': [
    ['\x1b[1;5C', 'ctrl+right'],
    ['\x1b[1;2A', 'shift+up'],
    ['\x1b[1;3D', 'alt+left'],
    ['\x1b[1;6H', 'ctrl+shift+home'],
    ['\x1b[1;8F', 'ctrl+alt+shift+end'],
    ['\x1b[3;5~', 'ctrl+delete'],
    ['\x1b[15;2~', 'shift+f5'],
    ['\x1b[1;2P', 'shift+f1'],
    ['\x1b[1;5R', 'ctrl+f3'],
    ['\x1bO1;5A', 'ctrl+up'],
    ['\x1bO5A', 'ctrl+up'],
  ],
  'a special key with others, as rxvt has it': [
    ['\x1b[a', 'shift+up'],
    ['\x1bOa', 'ctrl+up'],
    ['\x1b[3$', 'shift+delete'],
    ['\x1b[3^', 'ctrl+delete'],
    ['\x1b[3@', 'ctrl+shift+delete'],
    ['\x1b\x1b[A', 'alt+up'],
    ['\x1b\x1bOP', 'alt+f1'],
    ['\x1b\x1b[5~', 'alt+pageup'],
  ],
  'a key told apart from its modifiers': [
    ['\x1b[27;5;97~', 'ctrl+a'],
    ['\x1b[27;2;74~', 'J'],
    ['\x1b[27;2;33~', '!'],
    ['\x1b[27;5;9~', 'ctrl+tab'],
    ['\x1b[27;2;13~', 'shift+enter'],
    ['\x1b[27;6;65~', 'ctrl+shift+a'],
    ['\x1b[97u', 'a'],
    ['\x1b[97;5u', 'ctrl+a'],
    ['\x1b[106;2u', 'J'],
    ['\x1b[49:33;2u', '!'],
    ['\x1b[97;6u', 'ctrl+shift+a'],
    ['\x1b[97;4u', 'alt+A'],
    ['\x1b[97;9u', 'super+a'],
    ['\x1b[97;65u', 'a'],
    ['\x1b[27u', 'escape'],
    ['\x1b[13;5u', 'ctrl+enter'],
    ['\x1b[9;2u', 'shift+tab'],
    ['\x1b[127u', 'backspace'],
    ['\x1b[57414u', 'enter'],
    ['\x1b[57426u', 'delete'],
    ['\x1b[97;1:2u', 'a'],
  ],
};

const NOTHING: readonly (readonly [string, string])[] = [
  ['\x1b[<0;10;20m', 'the end of one'],
  ['\x1b[M !!', 'a click as X10 told it'],
  ['\x1b[32;10;20M', 'a click as urxvt tells it'],
  ['\x1b[I', 'the focus that came'],
  ['\x1b[O', 'the focus that went'],
  ['\x1b[12;40R', 'where the cursor is'],
  ['\x1b[?1;2c', 'what the terminal is'],
  ['\x1b[?2026;2$y', 'a mode of the terminal'],
  ['\x1b]11;rgb:0000/0000/0000\x07', 'a colour'],
  ['\x1b]52;c;c2VjcmV0\x1b\\', 'the clipboard'],
  ['\x1bP>|XTerm(370)\x1b\\', 'its version'],
  ['\x1b_Gi=31;OK\x1b\\', 'an answer about pictures'],
  ['\x1b[97;1:3u', 'a key let go'],
  ['\x1b[57441;2u', 'Shift by itself'],
  ['\x1b[25~', 'a key without a name'],
  ['\x1b[99;99;99q', 'what nobody knows'],
  [`\x1b[${'1;'.repeat(500)}A`, 'what is too long to mean anything'],
];

/** A sequence of random input, complete and broken. */
function someBytes(random: Random): Buffer {
  const pieces = [...Object.values(KEYS).flat(), ...NOTHING].map(([bytes]) => bytes);
  const one = (): Buffer => {
    const piece = Buffer.from(pieces[Math.floor(random() * pieces.length)]!);
    const dice = random();
    if (dice < 0.5) return piece;
    if (dice < 0.65) return piece.subarray(0, Math.floor(random() * piece.length));
    if (dice < 0.75) return Buffer.from(`\x1b[200~${piece.toString()}ä\x1b[201\x1b[201~`);
    return Buffer.from(Array.from({ length: 1 + Math.floor(random() * 5) }, () => Math.floor(random() * 256)));
  };
  return Buffer.concat(Array.from({ length: 1 + Math.floor(random() * 12) }, one));
}

function cutAnywhere(bytes: Buffer, random: Random): Buffer[] {
  const cuts = Array.from({ length: Math.floor(random() * 8) }, () => Math.floor(random() * bytes.length));
  const ends = [0, ...cuts.sort((a, b) => a - b), bytes.length];
  return ends.slice(1).map((end, index) => bytes.subarray(ends[index], end));
}

describe('key decoder', () => {
  for (const [what, keys] of Object.entries(KEYS)) {
    for (const [bytes, key] of keys) {
      it(`decodes ${what}: ${JSON.stringify(bytes)} is ${key}`, () => {
        expect(told(bytes)).to.deep.equal([key]);
      });
    }
  }

  for (const [bytes, what] of NOTHING) {
    it(`ignores ${what}, and decodes the next key`, () => {
      expect(told(`${bytes}j`)).to.deep.equal(['j']);
    });
  }

  it('decodes several keys of one read', () => {
    expect(told('jjj\x1b[A\x1b[Ak')).to.deep.equal(['j', 'j', 'j', 'up', 'up', 'k']);
  });

  it('reports each code point of an emoji separately', () => {
    expect(told('👩‍💻')).to.deep.equal(['👩', '\u200d', '💻']);
  });

  it('skips invalid UTF-8, and decodes the next key', () => {
    const broken = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe6, 0x97], [0x9b], [0xf0]];
    for (const bytes of broken) expect(told(Buffer.from([...bytes, 0x6a]))).to.deep.equal(['j'], String(bytes));
    expect(told('\u009bA'), 'an 8-bit CSI in UTF-8').to.deep.equal(['A']);
  });

  it('starts new input at the byte that cuts off a sequence', () => {
    expect(told('\x1b[1;\x1b[A')).to.deep.equal(['up']);
    expect(told('\x1b[1;\x03')).to.deep.equal(['ctrl+c']);
    expect(told('\x1b]0;title\x03')).to.deep.equal(['ctrl+c']);
  });
});

describe('a lone Esc', () => {
  it('is reported after a short time without further input', () => {
    const keyboard = new Keyboard().send('\x1b').waits(40);
    expect(keyboard.keys).to.deep.equal([]);
    expect(keyboard.waits(30).keys).to.deep.equal(['escape']);
    expect(keyboard.send('[A').keys, 'and is not the beginning of anything').to.deep.equal(['escape', '[', 'A']);
  });

  it('is not reported if the rest of a sequence arrives in time', () => {
    expect(new Keyboard().send('\x1b').waits(40).send('[').waits(40).send('A').waits(100).keys).to.deep.equal(['up']);
  });

  it('is not reported if the rest arrived while the process was busy', () => {
    const keyboard = new Keyboard().send('\x1b');
    keyboard.clock.after(50, () => keyboard.send('[A')); // Read in the turn after the timer that was due.
    expect(keyboard.waits(200).keys).to.deep.equal(['up']);
  });

  it('is reported twice for two', () => {
    expect(told('\x1b\x1b')).to.deep.equal(['escape', 'escape']);
    expect(told('\x1b\x1bj')).to.deep.equal(['escape', 'alt+j']);
  });
});

describe('a sequence whose end was lost', () => {
  it('swallows keys for up to a second', () => {
    for (const begun of ['\x1b[1;5', '\x1b]52;c;AAAA', '\x1bPq', '\x1b[M!', '\x1b]0;x\x1b']) {
      expect(new Keyboard().send(begun).waits(1_100).send('j').keys, JSON.stringify(begun)).to.deep.equal(['j']);
    }
  });

  it('leaves no timer after a reset', () => {
    const keyboard = new Keyboard().send('\x1b').waits(100);
    expect(keyboard.clock.pending).to.equal(0);
  });
});

describe('a paste', () => {
  const paste = (text: string) => `\x1b[200~${text}\x1b[201~`;

  it('is reported as one paste, whatever its text contains', () => {
    const text = 'x:q\x1b[A\x03 ä\t日';
    expect(told(`j${paste(text)}k`)).to.deep.equal(['j', `paste:${text}`, 'k']);
  });

  it('normalises line ends to \\n', () => {
    expect(told(paste('a\rb\r\nc\n'))).to.deep.equal(['paste:a\nb\nc\n']);
  });

  it('continues after bytes that only resemble its end', () => {
    expect(told(paste('a\x1b[201b\x1b[20\x1b[2'))).to.deep.equal(['paste:a\x1b[201b\x1b[20\x1b[2']);
  });

  it('is cut after 64 KiB at a character boundary, and the rest is not read as keys', () => {
    const [first, ...rest] = new Keyboard().send(paste(`a${'ä'.repeat(MAX_PASTE_BYTES)}`), 'k').told;
    expect(first).to.deep.equal({ kind: 'paste', text: `a${'ä'.repeat(MAX_PASTE_BYTES / 2 - 1)}` });
    expect(rest).to.deep.equal([{ kind: 'key', key: 'k' }]);
  });

  it('may be empty', () => {
    expect(told(paste(''))).to.deep.equal(['paste:']);
  });

  it('is reported after a timeout if its end is lost', () => {
    const keyboard = new Keyboard().send('\x1b[200~half').waits(4_000).send(' of it').waits(4_000);
    expect(keyboard.keys).to.deep.equal([]);
    expect(keyboard.waits(2_000).send('j').keys).to.deep.equal(['paste:half of it', 'j']);
  });
});

describe('random input', () => {
  it('decodes to the same keys however it is split into reads', () => {
    for (let seed = 1; seed <= 3_000; seed++) {
      const random = seededRandom(seed);
      const bytes = someBytes(random);
      const reads = cutAnywhere(bytes, random);
      expect(told(...reads), `seed ${seed}: ${JSON.stringify(bytes.toString('latin1'))}`).to.deep.equal(told(bytes));
      expect(told(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).to.deep.equal(told(bytes), `seed ${seed}`);
    }
  });

  it('decodes to named keys or single printable characters', () => {
    const plain = /^(?:ctrl\+)?(?:alt\+)?(?:shift\+)?(?:super\+)?(?:[a-z]+|f\d+|.)$/u;
    for (let seed = 1; seed <= 3_000; seed++) {
      for (const key of told(someBytes(seededRandom(seed))).filter((it) => !/^paste:|@\d+,\d+$/.test(it))) {
        expect(key, `seed ${seed}`)
          .to.match(plain)
          .and.not.match(/\p{Cc}/u);
      }
    }
  });
});

describe('the mouse', () => {
  it('is read from reports in SGR mode: clicks and the wheel, with any modifiers', () => {
    expect(told('\x1b[<0;1;1M', '\x1b[<0;120;40M')).to.deep.equal(['click@0,0', 'click@119,39']);
    expect(told('\x1b[<64;3;4M\x1b[<65;3;4M')).to.deep.equal(['wheelup@2,3', 'wheeldown@2,3']);
    expect(told('\x1b[<4;2;2M\x1b[<16;2;2M\x1b[<81;2;2M')).to.deep.equal(['click@1,1', 'click@1,1', 'wheeldown@1,1']);
  });

  it('is not heard for releases, movements, other buttons and sideways wheels', () => {
    const reports = ['0;1;1m', '32;1;1M', '35;1;1M', '1;1;1M', '2;1;1M', '66;1;1M', '67;1;1M', '128;1;1M'];
    expect(told(reports.map((report) => `\x1b[<${report}`).join(''))).to.deep.equal([]);
  });

  it('is not heard for malformed reports, which are not read as keys either', () => {
    const reports = ['<;1;1M', '<0;1M', '<0;1;1;1M', '<0;x;1M', `<0;${'9'.repeat(30)};1M`, '<M', '<0;-1;1M'];
    for (const report of reports)
      expect(told(`\x1b[${report}`), report).to.satisfy((keys: string[]) => !keys.some((key) => key.includes('@')));
    expect(told('\x1b[<0;0;0M')).to.deep.equal(['click@0,0']);
  });

  it('is heard wherever reads split a report, and between keys', () => {
    const bytes = 'j\x1b[<0;12;7Mk';
    for (let at = 1; at < bytes.length; at++) {
      expect(told(bytes.slice(0, at), bytes.slice(at)), String(at)).to.deep.equal(['j', 'click@11,6', 'k']);
    }
  });
});
