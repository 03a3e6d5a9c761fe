/** The body of a request that is not forwarded: small, and soon there. That of a management request is JSON in UTF-8. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Live } from '../../config/settings.js';
import type { Clock } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import { ClientGone } from './body.js';
import { ambiguityIn } from './json-text.js';
import { bodyTooLarge } from './shape.js';

export interface SmallBodyOptions {
  clock: Clock;
  /** Those in force: SIGHUP may put others in their place. */
  live: Live<'clientBodyTimeoutMs'>;
}

const LARGEST_BODY = 64 * 1024;
const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** @throws {Refusal} of which no word repeats the body: it may hold a secret. */
export async function readJson(req: IncomingMessage, res: ServerResponse, options: SmallBodyOptions): Promise<unknown> {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = req.headers;
  if (!JSON_TYPE.test(type) || coding.toLowerCase() !== 'identity') {
    throw new Refusal('unsupported_media_type', 'the body must be plain application/json in UTF-8');
  }
  const bytes = await readSmall(req, res, options);
  // Decoding would put U+FFFD where they are, and keep a name nobody sent.
  if (!isUtf8(bytes)) throw new Refusal('invalid_request', 'the body is not valid UTF-8');
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text) as unknown;
  } catch {
    throw new Refusal('invalid_request', 'the body is not valid JSON');
  }
  // Two readers would read these differently: one that audits requests, say, and this one.
  const ambiguity = ambiguityIn(text);
  if (ambiguity !== null) throw new Refusal('invalid_request', AMBIGUITIES[ambiguity]);
  return value;
}

const AMBIGUITIES = {
  'repeated name': 'the body names a field twice: send each field once',
  'rounded number': 'the body holds a number that would be rounded: send a whole number',
};

/** Reads a body that is small, whatever is in it. @throws {Refusal} when it is not, or is late. */
export async function readSmall(req: IncomingMessage, res: ServerResponse, options: SmallBodyOptions): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > LARGEST_BODY) throw bodyTooLarge();
  if (awaitsContinue(req)) res.writeContinue();
  return wholeBody(req, options);
}

/** Whether the client holds its body back until it is told to go on. Node has refused any other expectation. */
const awaitsContinue = ({ headers, httpVersion }: IncomingMessage) =>
  headers.expect !== undefined && httpVersion === '1.1';

function wholeBody(req: IncomingMessage, { clock, live }: SmallBodyOptions): Promise<Buffer> {
  const { socket } = req;
  let stop: () => void = () => undefined;
  const whole = new Promise<Buffer>((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    // For all of it, not for silence as on /v1: so little does not take longer.
    const cancel = clock.after(live.current.clientBodyTimeoutMs, () => {
      reject(new Refusal('request_timeout', 'the request body did not arrive in time'));
    });
    const onGone = () => {
      reject(new ClientGone());
    };
    stop = () => {
      cancel();
      socket.off('close', onGone);
    };
    req.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= LARGEST_BODY) pieces.push(piece);
      else reject(bodyTooLarge());
    });
    req.on('end', () => {
      resolve(Buffer.concat(pieces));
    });
    req.on('error', onGone);
    // Node forgets a request that was answered before its end, and then tells it nothing.
    socket.on('close', onGone);
  });
  return whole.finally(() => {
    stop();
  });
}
