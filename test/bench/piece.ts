/** A piece of an event stream that contains its time of sending, by the clock that all processes of a machine share. */

export const DONE = 'data: [DONE]\n\n';

export const stampedPiece = () =>
  `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-mini",` +
  `"choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}],"sent_ns":${process.hrtime.bigint()}}\n\n`;

/** How long ago it was sent; null if it has no time. */
export function ageMs(piece: string, nowNs: bigint): number | null {
  const sentNs = /"sent_ns":(\d+)/.exec(piece)?.[1];
  return sentNs === undefined ? null : Number(nowNs - BigInt(sentNs)) / 1e6;
}
