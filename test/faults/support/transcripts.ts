/** Transcripts of both sides, parsed as HTTP: the responses that a client received, and those that a script sent. */
import type { SentRequest } from './cached-responses.js';
import type { Exchange } from './upstream.js';
import { type Message, readMessage, valuesOf } from './wire.js';

export interface RequestWithResponse {
  answer: Message;
  asked: SentRequest;
}

const UNKNOWN: SentRequest = { method: '', target: '' };

/** @param asked the requests, in whose order the responses come. */
export function* responsesIn(bytes: Buffer, asked: readonly SentRequest[]): Generator<RequestWithResponse> {
  let answered = 0;
  for (let at = 0; at < bytes.length;) {
    const request = asked[answered] ?? UNKNOWN;
    const answer = readMessage(bytes, at, 'answer', ({ startLine }) => hasNoBody(startLine, request.method));
    if (!answer) return;
    yield { answer, asked: request };
    if (!answer.isComplete || switches(answer)) return;
    if (!isInterim(answer)) answered += 1;
    at = answer.end;
  }
}

const isInterim = ({ startLine }: Message) => /^\S+ 1\d\d /.test(startLine);

/** Whether the bytes that follow are not HTTP. */
export const switches = ({ startLine }: Message) => /^\S+ 101 /.test(startLine);

export const statusOf = ({ startLine }: Message) => Number(startLine.split(' ')[1]);

const hasNoBody = (startLine: string, method: string | undefined) =>
  method === 'HEAD' || /^\S+ (?:1\d\d|204|304) /.test(startLine);

/** The response that the script sent, without those of status 1xx; undefined if it is not HTTP. */
export function finalResponseOf(exchange: Exchange): Message | undefined {
  try {
    for (let at = 0; ;) {
      const answer = readMessage(exchange.sent, at, 'scripted answer', ({ startLine }) =>
        hasNoBody(startLine, exchange.method),
      );
      if (!answer || !isInterim(answer)) return answer;
      at = answer.end;
    }
  } catch {
    return undefined;
  }
}

export function isResponseComplete(exchange: Exchange): boolean {
  const answer = finalResponseOf(exchange);
  if (answer === undefined) return false;
  // Only the beginning of a long response is kept; its length shows whether the rest was sent.
  if (valuesOf(answer, 'content-length').length > 0) return answer.end <= exchange.sentBytes;
  return answer.isComplete || (answer.endsWithConnection && exchange.isFinished);
}
