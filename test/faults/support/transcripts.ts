/** Transcripts of both sides, read as HTTP: the answers that a client was given, and the one that a script gave. */
import type { Asked } from './kept-answers.js';
import type { Exchange } from './upstream.js';
import { type Message, readMessage, valuesOf } from './wire.js';

export interface Answered {
  answer: Message;
  asked: Asked;
}

const UNKNOWN: Asked = { method: '', target: '' };

/** @param asked in whose order the answers come. */
export function* answersIn(bytes: Buffer, asked: readonly Asked[]): Generator<Answered> {
  let answered = 0;
  for (let at = 0; at < bytes.length;) {
    const request = asked[answered] ?? UNKNOWN;
    const answer = readMessage(bytes, at, 'answer', ({ startLine }) => hasNoBody(startLine, request.method));
    if (!answer) return;
    yield { answer, asked: request };
    if (!answer.isWhole || switches(answer)) return;
    if (!isInterim(answer)) answered += 1;
    at = answer.end;
  }
}

const isInterim = ({ startLine }: Message) => /^\S+ 1\d\d /.test(startLine);

/** Whether what follows is not HTTP. */
export const switches = ({ startLine }: Message) => /^\S+ 101 /.test(startLine);

export const statusOf = ({ startLine }: Message) => Number(startLine.split(' ')[1]);

const hasNoBody = (startLine: string, method: string | undefined) =>
  method === 'HEAD' || /^\S+ (?:1\d\d|204|304) /.test(startLine);

/** What the script has sent of its answer, those of status 1xx aside; undefined when that is not HTTP. */
export function finalAnswerOf(exchange: Exchange): Message | undefined {
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

export function isAnswerWhole(exchange: Exchange): boolean {
  const answer = finalAnswerOf(exchange);
  if (answer === undefined) return false;
  // Of a long one only the beginning is kept: its length says what became of the rest.
  if (valuesOf(answer, 'content-length').length > 0) return answer.end <= exchange.sentBytes;
  return answer.isWhole || (answer.endsWithConnection && exchange.isFinished);
}
