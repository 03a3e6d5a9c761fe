import { expect } from 'chai';
import { type ContentReader, ContentReaders } from '../../daemon/core/content/content-reader.js';
import { heldAfterCollection } from '../faults/support/heap.js';

const KIB = 1024;

function eventOf(content: string): Buffer {
  const choices = [{ index: 0, delta: { content }, finish_reason: null }];
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-test-1', choices };
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
}

/** A chunk as read from a socket: a small slice of a large buffer. */
function received(bytes: Buffer): Buffer {
  const buffer = Buffer.allocUnsafeSlow(64 * KIB);
  return buffer.subarray(0, bytes.copy(buffer));
}

describe('the memory of a reader of event streams', () => {
  /** @returns bytes held per reader after all have been fed. */
  function heldByEach(count: number, feed: (reader: ContentReader) => void, capture = false): number {
    const readers = new ContentReaders({
      openDecoder: () => null,
      clock: { monotonic: () => 0 },
      maxCaptured: capture ? 64 * KIB : null,
    });
    const before = heldAfterCollection();
    const all = Array.from({ length: count }, () => readers.begin('p'));
    for (const reader of all) {
      reader.responseStarted('text/event-stream', null);
      feed(reader);
    }
    const held = heldAfterCollection() - before;
    expect(all).to.have.length(count); // Keeps the readers alive until here.
    return held / count;
  }

  it('is a few KiB each for a thousand open streams, wherever their chunks end', () => {
    const event = eventOf('word ');
    const held = heldByEach(1_000, (reader) => {
      for (let n = 0; n < 40; n++) reader.piece(Buffer.from(event));
      reader.piece(received(event.subarray(0, 70)));
    });
    expect(held).to.be.lessThan(16 * KIB);
  });

  it('is that of its head and tail for an event that never ends', () => {
    const held = heldByEach(100, (reader) => {
      reader.piece(Buffer.from('data: '));
      for (let n = 0; n < 100; n++) reader.piece(Buffer.alloc(4 * KIB, 'a'));
    });
    expect(held).to.be.lessThan(192 * KIB);
  });

  it('is that of the capture limit, head and tail for a message sent in single characters', () => {
    const event = eventOf('a');
    const feed = (reader: ContentReader) => {
      for (let n = 0; n < 20_000; n++) reader.piece(Buffer.from(event));
    };
    expect(heldByEach(10, feed, true)).to.be.lessThan(256 * KIB);
  });
});
