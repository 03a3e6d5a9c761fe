/** What the daemon adds to a response that it cuts. I5 allows only this after the upstream's bytes. */
import { type Message, valuesOf } from './wire.js';

/** The number of bytes at the beginning that are equal. */
export function sharedLength(given: Buffer, got: Buffer): number {
  if (given.subarray(0, got.length).equals(got)) return got.length;
  const differs = got.findIndex((byte, at) => byte !== given[at]);
  return differs === -1 ? got.length : differs;
}

const EVENT = /^data: \{"error":(?:"[^"]+"|\{"message":"[^"]+","type":"\w+","code":"\w+"\})[^\n]*\}\n\n$/;

/** Whether it is one server-sent event that reports an error, after another event or before all others. */
export function isErrorEvent(answer: Message, before: Buffer, farewell: Buffer): boolean {
  const text = before.toString('latin1');
  return (
    /^text\/event-stream\b/i.test(valuesOf(answer, 'content-type').join()) &&
    valuesOf(answer, 'content-encoding').length === 0 &&
    (text === '' || /(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)$/.test(text)) &&
    EVENT.test(farewell.toString('utf8'))
  );
}

/** A close frame with a status and a reason. */
export const isCloseFrame = (bytes: Buffer) =>
  bytes[0] === 0x88 && bytes[1] === bytes.length - 2 && [1001, 1008].includes(bytes.readUInt16BE(2));
