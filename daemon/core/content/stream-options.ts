/** The option of a chat completion by which a client asks for the usage of a stream. */
import { JsonScanner } from './json-scanner.js';
import { wanted } from './wanted-members.js';

const WANTED = wanted({ stream: 'literal', stream_options: 'literal', 'stream_options.include_usage': 'literal' });
const [STREAM, STREAM_OPTIONS, INCLUDE_USAGE] = [0, 1, 2];
const OPTION = Buffer.from('"stream_options":{"include_usage":true},');

/**
 * A body that asks for a stream and says nothing of its usage, with the option added. All other bytes are the same.
 *
 * @param body JSON.
 * @returns null if it asks for no stream, or has `stream_options`, whatever their value, or is ambiguous.
 */
export function requestingUsage(body: Buffer): Buffer | null {
  const scanner = new JsonScanner(WANTED, null, false, true);
  scanner.scan(body);
  const { values, repeated } = scanner;
  if (values[STREAM] !== 't' || values[STREAM_OPTIONS] !== null || repeated !== 0) return null;
  // The object is not empty, so that something follows the comma.
  const inside = body.indexOf('{') + 1;
  return Buffer.concat([body.subarray(0, inside), OPTION, body.subarray(inside)]);
}

/** Whether a JSON body asks for a stream, but not for its usage. One that says any of it twice may mean this. */
export function lacksUsage(body: Buffer): boolean {
  const scanner = new JsonScanner(WANTED, null, false, true);
  scanner.scan(body);
  const { values, repeated } = scanner;
  return repeated !== 0 || (values[STREAM] === 't' && values[INCLUDE_USAGE] !== 't');
}

/**
 * Whether an event of such a stream is the one that only reports the usage: it has a list of choices without an element. Events with
 * choices may have a usage too, which some providers report without being asked.
 *
 * @param event with its line ends.
 */
export function isUsageEvent(event: Buffer): boolean {
  if (!event.includes('"usage"')) return false;
  const lines = event.toString().split(/\r\n|[\r\n]/);
  const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice('data:'.length));
  try {
    const chunk = JSON.parse(data.join('\n')) as Partial<Record<'choices' | 'usage' | 'error', unknown>> | null;
    const { choices, usage, error } = chunk ?? {};
    const isReported = typeof usage === 'object' && usage !== null;
    return isReported && Array.isArray(choices) && choices.length === 0 && (error ?? null) === null;
  } catch {
    return false;
  }
}
