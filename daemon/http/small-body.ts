/** Small request bodies that are not forwarded, such as the JSON of management requests. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Live } from '../../config/settings.js';
import type { Clock } from '../core/ports.js';
import { GatheredBytes } from '../core/gathered-bytes.js';
import { Refusal } from '../core/refusal.js';
import { ClientGone } from './connection-ends.js';
import { ambiguityIn } from './json-text.js';
import { bodyTooLarge } from './request-head.js';

export interface SmallBodyOptions {
  clock: Clock;
  /** The current settings: SIGHUP may replace them. */
  live: Live<'clientBodyTimeoutMs'>;
}

/** Maximum length of a small body. */
export const MAX_SMALL_BODY_BYTES = 64 * 1024;
const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** Reads a JSON body in UTF-8. @throws {Refusal} whose text never quotes the body, which may contain a secret. */
export async function readJson(req: IncomingMessage, res: ServerResponse, options: SmallBodyOptions): Promise<unknown> {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = req.headers;
  if (!JSON_TYPE.test(type) || coding.toLowerCase() !== 'identity') {
    throw new Refusal(
      'unsupported_media_type',
      'the body must be uncompressed JSON in UTF-8, with Content-Type: application/json',
    );
  }
  const bytes = await readSmallBody(req, res, options);
  // Decoding would replace invalid bytes with U+FFFD, and store a name that the client did not send.
  if (!isUtf8(bytes)) throw new Refusal('invalid_request', 'the body is not valid UTF-8');
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text) as unknown;
  } catch {
    throw new Refusal('invalid_request', 'the body is not valid JSON');
  }
  // Other readers, such as an auditing proxy, might read such a body differently.
  const ambiguity = ambiguityIn(text);
  if (ambiguity !== null) throw new Refusal('invalid_request', AMBIGUITIES[ambiguity]);
  return value;
}

const AMBIGUITIES = {
  'repeated name': 'the body names a field twice: send each field once',
  'rounded number': 'the body holds a number that would be rounded: send a whole number',
};

/** Reads a small body of any type. @throws {Refusal} if it is too large or too slow. */
export async function readSmallBody(
  req: IncomingMessage,
  res: ServerResponse,
  options: SmallBodyOptions,
): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > MAX_SMALL_BODY_BYTES) throw bodyTooLarge();
  if (expectsContinue(req)) res.writeContinue();
  return wholeBody(req, options);
}

/** Whether the client waits for 100 Continue. Node has already refused any other expectation. */
const expectsContinue = ({ headers, httpVersion }: IncomingMessage) =>
  headers.expect !== undefined && httpVersion === '1.1';

function wholeBody(req: IncomingMessage, { clock, live }: SmallBodyOptions): Promise<Buffer> {
  const { socket } = req;
  let stop: () => void = () => undefined;
  const whole = new Promise<Buffer>((resolve, reject) => {
    const body = new GatheredBytes();
    // A limit for the complete body, unlike on /v1, where it is per KiB: a body this small needs no more.
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
    req.on('data', (chunk: Buffer) => {
      if (body.length + chunk.length <= MAX_SMALL_BODY_BYTES) body.add(chunk);
      else reject(bodyTooLarge());
    });
    req.on('end', () => {
      resolve(body.take());
    });
    req.on('error', onGone);
    // Node forgets a request whose response was sent before its end, and emits no more events on it.
    socket.on('close', onGone);
  });
  return whole.finally(() => {
    stop();
  });
}
