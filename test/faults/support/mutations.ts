/** Requests that no client would write: those of the corpus, changed at random. The same seed and number give the same request. */
import { type Random, seededRandom } from '../../support/model.js';
import { CORPUS, type CorpusRequest } from './corpus.js';

export interface Mutant {
  /** With the placeholder for the secret; one character per byte. */
  text: string;
  /** The titles of the requests it came from. */
  parents: string[];
  /** How many pieces it is sent in. */
  pieces: number;
  /** How its client closes the connection. */
  leaves: 'closes' | 'resets' | 'ends';
}

const MOST_CHANGES = 4;
// Most are small. The few large ones cost as much as a hundred small ones.
const SMALL_BYTES = 2_000;
const LARGE_ONE_IN = 100;

// Parts of framing in spellings that readers disagree about.
const PHRASES = [
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'content-length : 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'transfer-encoding: identity\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Connection: close\r\n',
  'Connection: keep-alive, content-length, transfer-encoding, authorization\r\n',
  'Expect: 100-continue\r\n',
  'Upgrade: h2c\r\nConnection: Upgrade\r\n',
  'Trailer: Content-Length\r\n',
  'TE: chunked\r\n',
  'Authorization: Bearer {{token}}\r\n',
  'Host: llmp.test\r\n',
  'HTTP/1.0',
  '\r\n',
  '\r\n\r\n',
  '\n\n',
  '\r',
  '\0',
  ' ',
  '\t',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  '5;a=b\r\nhello\r\n',
];
const BYTES = ['\0', '\t', '\n', '\r', ' ', '"', '#', '%', ',', '0', ':', ';', '=', '\\', '\x7f', '\x80', '\xff'];
const SIZES = [
  '0',
  '00',
  '1',
  '4',
  '5',
  '6',
  'ff',
  'FFFFFFFF',
  '0x5',
  '-1',
  '+5',
  '5 ',
  ' 5',
  '5;',
  '',
  '10000000000000005',
];

/** Chooses at random, the same for the same seed. */
class Dice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** A whole number from 0 up to below `most`. */
  below(most: number): number {
    return Math.floor(this.#random() * most);
  }

  one<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }
}

const HEAD = 'Host: llmp.test\r\nAuthorization: Bearer {{token}}\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
// Most of the corpus is refused. Most mutants of these are not.
const GOOD = [
  `GET /v1/models HTTP/1.1\r\n${HEAD}\r\n`,
  `POST /v1/echo HTTP/1.1\r\n${HEAD}Content-Length: 5\r\n\r\nhello`,
  `POST /v1/echo HTTP/1.1\r\n${HEAD}${CHUNKED}\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n`,
  `DELETE /v1/files/1 HTTP/1.1\r\n${HEAD}${CHUNKED}Trailer: X-A\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\n\r\n`,
  `HEAD /v1/models?a=b HTTP/1.1\r\nConnection: x-a\r\nX-A: b\r\n${HEAD}\r\n`,
].map((text, index): CorpusRequest => ({ title: `good ${index}`, text }));
const GOOD_ONE_IN = 2;

type Change = (text: string, dice: Dice, other: () => string) => string;

const CHANGES: Change[] = [
  function otherByte(text, dice) {
    const at = dice.below(text.length);
    return text.slice(0, at) + dice.one(BYTES) + text.slice(at + 1);
  },
  function flippedBit(text, dice) {
    const at = dice.below(text.length);
    return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << dice.below(8))) + text.slice(at + 1);
  },
  function phrase(text, dice) {
    const at = dice.below(text.length + 1);
    return text.slice(0, at) + dice.one(PHRASES) + text.slice(at);
  },
  function field(text, dice) {
    return beforeALine(text, dice, dice.one(PHRASES));
  },
  function deleted(text, dice) {
    const at = dice.below(text.length);
    return text.slice(0, at) + text.slice(at + 1 + dice.below(20));
  },
  function doubled(text, dice) {
    const at = dice.below(text.length);
    const end = at + 1 + dice.below(60);
    return text.slice(0, end) + text.slice(at);
  },
  function lineDoubled(text, dice) {
    return beforeALine(text, dice, `${dice.one(text.split('\r\n'))}\r\n`);
  },
  function otherSize(text, dice) {
    const sizes = [...text.matchAll(/(?<=\r\n)[0-9a-f]+(?=[;\r])|(?<=Content-Length: )\d+/gi)];
    if (sizes.length === 0) return text;
    const { index, 0: size } = dice.one(sizes);
    return text.slice(0, index) + dice.one(SIZES) + text.slice(index + size.length);
  },
  function spliced(text, dice, other) {
    const tail = other();
    return text.slice(0, dice.below(text.length + 1)) + tail.slice(dice.below(tail.length));
  },
  function pipelined(text, _dice, other) {
    return text + other();
  },
  function cutOff(text, dice) {
    return text.slice(0, dice.below(text.length) + 1);
  },
];

function beforeALine(text: string, dice: Dice, line: string): string {
  const starts = [...text.matchAll(/(?<=\r\n)/g)].map(({ index }) => index);
  const at = starts.length === 0 ? 0 : dice.one(starts);
  return text.slice(0, at) + line + text.slice(at);
}

const SMALL = CORPUS.filter(({ text }) => text.length <= SMALL_BYTES);

export function mutant(seed: number, number: number): Mutant {
  const dice = new Dice(Math.imul(seed, 0x9e3779b1) ^ number);
  const parents: string[] = [];
  const parent = () => {
    const isGood = dice.below(GOOD_ONE_IN) === 0;
    const { title, text } = dice.one<CorpusRequest>(isGood ? GOOD : dice.below(LARGE_ONE_IN) === 0 ? CORPUS : SMALL);
    parents.push(title);
    return text;
  };
  let text = parent();
  // Few changes are more frequent than many.
  for (let changes = 1 + dice.below(1 + dice.below(MOST_CHANGES)); changes > 0; changes--) {
    if (text.length > 0) text = dice.one(CHANGES)(text, dice, parent);
  }
  return { text, parents, pieces: 1 + dice.below(4), leaves: dice.one(['closes', 'resets', 'ends']) };
}
