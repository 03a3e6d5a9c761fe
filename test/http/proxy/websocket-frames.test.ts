import { expect } from 'chai';
import { FrameReader } from '../../../daemon/http/proxy/websocket-frames.js';
import { frameOf } from '../../support/frames.js';

/** A reader that records the messages it finds. */
function newReader(isFromClient: boolean) {
  const messages: string[] = [];
  let parts: Buffer[] = [];
  const frames = new FrameReader(isFromClient, {
    wantsPayload: true,
    begin: () => (parts = []),
    payload: (bytes, from, to) => parts.push(Buffer.from(bytes.subarray(from, to))),
    end: () => messages.push(Buffer.concat(parts).toString('latin1')),
  });
  const read = (bytes: Buffer) => {
    for (let at = 0; at < bytes.length && !frames.isMalformed;) at = frames.read(bytes, at);
  };
  return { frames, messages, read };
}

describe('WebSocket frames', () => {
  for (const isFromClient of [true, false]) {
    const frame = (text: string, options: Parameters<typeof frameOf>[1] = {}) =>
      frameOf(text, { isMasked: isFromClient, ...options });
    const who = isFromClient ? 'a client' : 'a provider';

    it(`of ${who}: every length and form is read, byte by byte and in chunks`, () => {
      const frames = [0, 1, 125, 126, 300, 65_535, 65_536].flatMap((length) => [
        frame('a'.repeat(length), { opcode: 2 }),
        frame('b'.repeat(length), { isFinal: false }),
        frame('p', { opcode: 9 }),
        frame('c'.repeat(length), { opcode: 0 }),
      ]);
      const expected = [0, 1, 125, 126, 300, 65_535, 65_536].flatMap((length) => [
        'a'.repeat(length),
        'b'.repeat(length) + 'c'.repeat(length),
      ]);
      const all = Buffer.concat(frames);
      const ends = new Set(frames.map((_frame, i) => Buffer.concat(frames.slice(0, i + 1)).length));
      for (const size of [1, 2, 7, 1000, 100_000]) {
        const reader = newReader(isFromClient);
        expect(reader.frames.isBetweenFrames).to.equal(true);
        for (let at = 0; at < all.length; at += size) {
          const piece = all.subarray(at, at + size);
          reader.read(piece);
          if (reader.frames.isBetweenFrames !== ends.has(at + piece.length)) expect.fail(`at ${at + piece.length}`);
        }
        expect(reader.messages.join() === expected.join(), `pieces of ${size}`).to.equal(true);
      }
    });

    it(`of ${who}: a message cannot begin within another, a control frame can`, () => {
      const { frames, read } = newReader(isFromClient);
      read(frame('{"ty', { isFinal: false }));
      expect(frames).to.include({ isBetweenFrames: true, isBetweenMessages: false });
      read(frame('', { opcode: 9 }));
      expect(frames).to.include({ isBetweenFrames: true, isBetweenMessages: false, isControl: true });
      read(frame('pe":1}', { opcode: 0 }));
      expect(frames).to.include({ isBetweenMessages: true, hasEndedMessage: true, isMalformed: false });
    });

    const MALFORMED: Record<string, Buffer[]> = {
      'the wrong masking': [frameOf('a', { isMasked: !isFromClient })],
      'a reserved bit': [frame('a', { rsv: 0x40 })],
      'a reserved opcode': [frame('a', { opcode: 3 })],
      'a reserved opcode of a control frame': [frame('a', { opcode: 11 })],
      'a control frame in fragments': [frame('a', { opcode: 9, isFinal: false })],
      'a control frame of 126 bytes': [frame('a'.repeat(126), { opcode: 9 })],
      'a continuation of nothing': [frame('a', { opcode: 0 })],
      'a message within a message': [frame('a', { isFinal: false }), frame('b')],
      'something after a close frame': [frame('', { opcode: 8 }), frame('a')],
      'a length that no number has': [Buffer.from([0x81, isFromClient ? 0xff : 0x7f, ...Array<number>(12).fill(0xff)])],
    };
    for (const [what, frames] of Object.entries(MALFORMED)) {
      it(`of ${who} with ${what} are malformed`, () => {
        for (const size of [1, 1000]) {
          const bytes = Buffer.concat(frames);
          const reader = newReader(isFromClient);
          for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
          expect(reader.frames.isMalformed).to.equal(true);
        }
      });
    }
  }
});
