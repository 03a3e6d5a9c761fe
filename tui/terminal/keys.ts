import type { Clock } from '../../console/terminal-io.js';
import { controlSequenceKey, shiftSequenceKey, textKey } from './key-names.js';

export type Input = { kind: 'key'; key: string } | { kind: 'paste'; text: string };

// A terminal sends a sequence in one go; a lone Esc is one after which nothing came for so long.
const ESCAPE_MS = 50;
// What lost its end on the way must not eat for ever what is typed.
const SEQUENCE_MS = 1_000;
const PASTE_MS = 5_000;
/** The most of one paste that is told, in bytes. */
export const LONGEST_PASTE = 64 * 1024;
const LONGEST_SEQUENCE = 64;
const X10_MOUSE_BYTES = 3;

const ESC = 0x1b;
const BEL = 0x07;
const STRING_END = 0x5c; // Behind ESC.
const DELETE = 0x7f;
const PASTE_END = Buffer.from('\x1b[201~', 'latin1');

type State =
  | 'ground'
  | 'character' // the rest of one in UTF-8
  | 'escape'
  | 'escape escape'
  | 'control sequence' // CSI: ESC [ parameters, final
  | 'shift sequence' // SS3: ESC O parameters, final
  | 'string' // OSC, DCS and the like, up to ST or BEL
  | 'string escape'
  | 'mouse'
  | 'paste';

const AFTER_ESCAPE: Record<string, State> = {
  '[': 'control sequence',
  O: 'shift sequence',
  ']': 'string',
  P: 'string',
  X: 'string',
  '^': 'string',
  _: 'string',
};

/** Where an introducer may have been a key: Alt and what it is written with. */
const ALONE: ReadonlySet<State> = new Set(Object.values(AFTER_ESCAPE));

/** How long the rest may take. */
function patienceMs(state: State, isBegun: boolean): number | undefined {
  if (state === 'ground' || state === 'character') return undefined;
  if (state === 'paste') return PASTE_MS;
  return isBegun || state === 'string escape' || state === 'mouse' ? SEQUENCE_MS : ESCAPE_MS;
}

const isUtf8Lead = (byte: number) => byte >= 0xc2 && byte <= 0xf4;
const utf8Length = (lead: number) => (lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);

/**
 * The bytes of a terminal's keyboard as keys and pastes.
 *
 * One byte at a time, so that it makes no difference how reads cut them. What is not known is swallowed whole: a piece
 * of a sequence taken for letters would be commands that nobody gave.
 */
export class KeyDecoder {
  readonly #clock: Clock;
  readonly #tell: (input: Input) => void;
  #state: State = 'ground';
  /** Of the sequence at hand, behind its introducer. */
  #text = '';
  #introducer = '';
  #hasAlt = false;
  /** Of the character, mouse report or paste at hand. */
  #bytes: number[] = [];
  #matched = 0; // How much of PASTE_END has come.
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, tell: (input: Input) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  push(bytes: Uint8Array): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const byte of bytes) this.#take(byte);
    const ms = patienceMs(this.#state, this.#text !== '');
    if (ms !== undefined) this.#wait(ms);
  }

  /** Forgets what was begun. */
  reset(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#enter('ground');
  }

  #wait(ms: number): void {
    // A timer runs before what came meanwhile is read; the second one lets that pass.
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#cancelTimer = this.#clock.after(1, () => {
        this.#giveUp();
      });
    });
  }

  #giveUp(): void {
    const state = this.#state;
    if (state === 'paste') this.#endPaste();
    else if (state === 'escape' || state === 'escape escape') {
      this.#key('escape');
      if (state === 'escape escape') this.#key('escape');
    } else if (this.#text === '' && ALONE.has(state)) {
      if (this.#hasAlt) this.#key('escape');
      this.#key(`alt+${this.#introducer}`);
    }
    this.#enter('ground');
  }

  #key(key: string | undefined): void {
    if (key !== undefined) this.#tell({ kind: 'key', key });
  }

  #enter(state: State): void {
    this.#state = state;
    this.#text = '';
    this.#bytes = [];
    this.#matched = 0;
    if (state === 'ground' || state === 'escape') this.#hasAlt = false;
  }

  readonly #takers: Record<State, (byte: number) => void> = {
    ground: this.#takePlain.bind(this),
    character: this.#takeCharacter.bind(this),
    escape: this.#takeEscaped.bind(this),
    'escape escape': this.#takeEscapedTwice.bind(this),
    'control sequence': this.#takeSequence.bind(this),
    'shift sequence': this.#takeSequence.bind(this),
    string: this.#takeString.bind(this),
    'string escape': this.#takeStringEscaped.bind(this),
    mouse: this.#takeMouse.bind(this),
    paste: this.#takePaste.bind(this),
  };

  #take(byte: number): void {
    this.#takers[this.#state](byte);
  }

  #takePlain(byte: number): void {
    if (byte === ESC) this.#enter('escape');
    else if (isUtf8Lead(byte)) this.#beginCharacter(byte);
    else {
      if (byte <= DELETE) this.#key(textKey(byte, this.#hasAlt));
      this.#enter('ground');
    }
  }

  #beginCharacter(lead: number): void {
    this.#state = 'character';
    this.#bytes = [lead];
  }

  #takeCharacter(byte: number): void {
    if (byte < 0x80 || byte > 0xbf) {
      this.#startOver(byte);
      return;
    }
    this.#bytes.push(byte);
    if (this.#bytes.length < utf8Length(this.#bytes[0] ?? 0)) return;
    const character = Buffer.from(this.#bytes).toString();
    // Not a character after all: too long a form, a surrogate, beyond the last one.
    const isValid = Buffer.byteLength(character) === this.#bytes.length && character !== '\ufffd';
    if (isValid) this.#key(textKey(character.codePointAt(0) ?? 0, this.#hasAlt));
    this.#enter('ground');
  }

  #takeEscaped(byte: number): void {
    const next = AFTER_ESCAPE[String.fromCharCode(byte)];
    if (byte === ESC) this.#enter('escape escape');
    else if (next) {
      this.#introducer = String.fromCharCode(byte);
      this.#enter(next);
    } else {
      this.#hasAlt = true;
      this.#takePlain(byte);
    }
  }

  /** Alt and a special key, as rxvt has it, or a lone Esc and whatever begins then. */
  #takeEscapedTwice(byte: number): void {
    const character = String.fromCharCode(byte);
    if (character === '[' || character === 'O') this.#hasAlt = true;
    else this.#key('escape');
    this.#state = 'escape';
    this.#take(byte);
  }

  #takeSequence(byte: number): void {
    if (byte < 0x20 || byte >= DELETE) {
      // Not part of any: this one was cut off.
      this.#startOver(byte);
      return;
    }
    const character = String.fromCharCode(byte);
    // rxvt ends Shift and a special key with what is no end elsewhere; the Linux console has two introducers.
    const isRxvtShift = character === '$' && /^\d+$/.test(this.#text);
    const isConsole = character === '[' && this.#text === '' && this.#state === 'control sequence';
    if ((byte >= 0x40 || isRxvtShift) && !isConsole) this.#endSequence(character);
    else if (this.#text.length < LONGEST_SEQUENCE) this.#text += character;
  }

  #endSequence(final: string): void {
    const text = this.#text;
    const isControl = this.#state === 'control sequence';
    if (isControl && final === 'M' && text === '') this.#enter('mouse');
    else if (isControl && final === '~' && text === '200') this.#enter('paste');
    else {
      // A longer one means nothing, whatever its beginning would.
      if (text.length < LONGEST_SEQUENCE)
        this.#key((isControl ? controlSequenceKey : shiftSequenceKey)(text, final, this.#hasAlt));
      this.#enter('ground');
    }
  }

  #takeMouse(byte: number): void {
    if (this.#bytes.push(byte) === X10_MOUSE_BYTES) this.#enter('ground');
  }

  #takeString(byte: number): void {
    this.#text = '…'; // What it says is nobody's business, only that it has begun.
    if (byte === ESC) this.#state = 'string escape';
    else if (byte === BEL) this.#enter('ground');
    else if (byte < 0x20) this.#startOver(byte);
  }

  #takeStringEscaped(byte: number): void {
    this.#enter(byte === STRING_END ? 'ground' : 'escape');
    if (byte !== STRING_END) this.#take(byte);
  }

  /** Whatever was begun is over, and this byte is the first of something else. */
  #startOver(byte: number): void {
    this.#enter('ground');
    this.#take(byte);
  }

  #takePaste(byte: number): void {
    if (byte === PASTE_END[this.#matched]) {
      this.#matched++;
      if (this.#matched === PASTE_END.length) this.#endPaste();
      return;
    }
    // Not the end after all. Only ESC can begin it anew: there is no other in it.
    const more = [...PASTE_END.subarray(0, this.#matched), ...(byte === ESC ? [] : [byte])];
    this.#matched = byte === ESC ? 1 : 0;
    this.#bytes.push(...more.slice(0, LONGEST_PASTE - this.#bytes.length));
  }

  #endPaste(): void {
    // As a stream, so that a character cut off at the end is left out.
    const text = new TextDecoder().decode(Buffer.from(this.#bytes), { stream: true });
    this.#enter('ground');
    this.#tell({ kind: 'paste', text: text.replace(/\r\n?/g, '\n') });
  }
}
