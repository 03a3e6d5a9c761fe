import type { Clock } from '../../console/terminal-io.js';
import { type MouseInput, mouseInput } from './mouse.js';
import { controlSequenceKey, shiftSequenceKey, textKey } from './key-names.js';

export type Input = { kind: 'key'; key: string } | { kind: 'paste'; text: string } | MouseInput;

// A terminal sends a sequence at once, so an Esc followed by nothing for this time is the key itself.
const ESCAPE_MS = 50;
// A sequence or paste that lost its end must not swallow later input without limit.
const SEQUENCE_MS = 1_000;
const PASTE_MS = 5_000;
/** Limit of a paste, in bytes; the rest is dropped. */
export const MAX_PASTE_BYTES = 64 * 1024;
const MAX_SEQUENCE_LENGTH = 64;
const X10_MOUSE_BYTES = 3;

const ESC = 0x1b;
const BEL = 0x07;
const STRING_END = 0x5c; // After ESC.
const DELETE = 0x7f;
const PASTE_END = Buffer.from('\x1b[201~', 'latin1');

type State =
  | 'ground'
  | 'character' // continuation bytes in UTF-8
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

/** States whose introducer may instead be a key with Alt. */
const ALT_INTRODUCERS: ReadonlySet<State> = new Set(Object.values(AFTER_ESCAPE));

/** How long to wait for the rest of the input in a state. */
function timeoutMs(state: State, isBegun: boolean): number | undefined {
  if (state === 'ground' || state === 'character') return undefined;
  if (state === 'paste') return PASTE_MS;
  return isBegun || state === 'string escape' || state === 'mouse' ? SEQUENCE_MS : ESCAPE_MS;
}

const isUtf8Lead = (byte: number) => byte >= 0xc2 && byte <= 0xf4;
const utf8Length = (lead: number) => (lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);

/**
 * Decoder of terminal input: turns bytes into keys and pastes.
 *
 * It takes one byte at a time, so the boundaries of reads do not matter. Unknown sequences are skipped as a whole: a part of one read
 * as letters would run commands that the operator did not give.
 */
export class KeyDecoder {
  readonly #clock: Clock;
  readonly #emit: (input: Input) => void;
  #state: State = 'ground';
  /** The current sequence, after its introducer. */
  #text = '';
  #introducer = '';
  #hasAlt = false;
  /** Bytes of the current character, mouse report or paste. */
  #bytes: number[] = [];
  #matched = 0; // Number of bytes of PASTE_END received.
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, tell: (input: Input) => void) {
    this.#clock = clock;
    this.#emit = tell;
  }

  push(bytes: Uint8Array): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const byte of bytes) this.#take(byte);
    const ms = timeoutMs(this.#state, this.#text !== '');
    if (ms !== undefined) this.#wait(ms);
  }

  /** Discards incomplete input. */
  reset(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#enter('ground');
  }

  #wait(ms: number): void {
    // Timers run before pending input is read. The second timer lets that input be read first.
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
    } else if (this.#text === '' && ALT_INTRODUCERS.has(state)) {
      if (this.#hasAlt) this.#key('escape');
      this.#key(`alt+${this.#introducer}`);
    }
    this.#enter('ground');
  }

  #key(key: string | undefined): void {
    if (key !== undefined) this.#emit({ kind: 'key', key });
  }

  #enter(state: State): void {
    this.#state = state;
    this.#text = '';
    this.#bytes = [];
    this.#matched = 0;
    if (state === 'ground' || state === 'escape') this.#hasAlt = false;
  }

  readonly #handlers: Record<State, (byte: number) => void> = {
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
    this.#handlers[this.#state](byte);
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
    // Invalid UTF-8: an overlong form, a surrogate, or beyond the last code point.
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

  /** Alt with a special key, as rxvt sends it, or a lone Esc followed by other input. */
  #takeEscapedTwice(byte: number): void {
    const character = String.fromCharCode(byte);
    if (character === '[' || character === 'O') this.#hasAlt = true;
    else this.#key('escape');
    this.#state = 'escape';
    this.#take(byte);
  }

  #takeSequence(byte: number): void {
    if (byte < 0x20 || byte >= DELETE) {
      // Not part of any sequence: the current one was cut off.
      this.#startOver(byte);
      return;
    }
    const character = String.fromCharCode(byte);
    // rxvt ends Shift with a special key by `$`, which is not a final byte elsewhere; the Linux console sends two introducers.
    const isRxvtShift = character === '$' && /^\d+$/.test(this.#text);
    const isConsole = character === '[' && this.#text === '' && this.#state === 'control sequence';
    if ((byte >= 0x40 || isRxvtShift) && !isConsole) this.#endSequence(character);
    else if (this.#text.length < MAX_SEQUENCE_LENGTH) this.#text += character;
  }

  #endSequence(final: string): void {
    const text = this.#text;
    const isControl = this.#state === 'control sequence';
    if (isControl && final === 'M' && text === '') this.#enter('mouse');
    else if (isControl && final === '~' && text === '200') this.#enter('paste');
    else if (isControl && text.startsWith('<')) {
      const input = mouseInput(text, final);
      if (input) this.#emit(input);
      this.#enter('ground');
    } else {
      // A sequence above the limit is ignored.
      if (text.length < MAX_SEQUENCE_LENGTH)
        this.#key((isControl ? controlSequenceKey : shiftSequenceKey)(text, final, this.#hasAlt));
      this.#enter('ground');
    }
  }

  #takeMouse(byte: number): void {
    if (this.#bytes.push(byte) === X10_MOUSE_BYTES) this.#enter('ground');
  }

  #takeString(byte: number): void {
    this.#text = '…'; // The content is ignored; this only records that the string has begun.
    if (byte === ESC) this.#state = 'string escape';
    else if (byte === BEL) this.#enter('ground');
    else if (byte < 0x20) this.#startOver(byte);
  }

  #takeStringEscaped(byte: number): void {
    this.#enter(byte === STRING_END ? 'ground' : 'escape');
    if (byte !== STRING_END) this.#take(byte);
  }

  /** Discards incomplete input, and handles the byte as the first of new input. */
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
    // Not the end of the paste. Only ESC can start PASTE_END again, because it contains no other ESC.
    const more = [...PASTE_END.subarray(0, this.#matched), ...(byte === ESC ? [] : [byte])];
    this.#matched = byte === ESC ? 1 : 0;
    this.#bytes.push(...more.slice(0, MAX_PASTE_BYTES - this.#bytes.length));
  }

  #endPaste(): void {
    // In stream mode, a character cut off at the end is dropped.
    const text = new TextDecoder().decode(Buffer.from(this.#bytes), { stream: true });
    this.#enter('ground');
    this.#emit({ kind: 'paste', text: text.replace(/\r\n?/g, '\n') });
  }
}
