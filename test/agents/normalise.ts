/** Requests of two runs of an agent, in a form in which they are equal if the agent asked for the same. */
import type { SeenRequest } from './stand-in.js';

/** What differs between two runs of the same agent: where it works, IDs, times, and what is derived from them. */
function withoutRun(text: string, home: string): string {
  const name = home.slice(home.lastIndexOf('/') + 1);
  return text
    .replaceAll(name, 'HOME')
    .replace(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g, 'UUID')
    .replace(/\b[0-9a-f]{64}\b/g, 'HASH')
    .replace(/(?<!\d)1[789]\d{8}(?:\d{3})?(?:\.\d+)?(?!\d)/g, '0')
    .replace(/\bses_\w+/g, 'SESSION')
    .replace(/127\.0\.0\.1:\d+/g, 'ADDRESS')
    .replace(/Chunk ID: [0-9a-f]+/g, 'Chunk ID')
    .replace(/(Wall time:|PGID:) [\d.]+/g, '$1');
}

/** Headers that belong to a connection, carry the credential, or are added by a proxy. The daemon turns the compression of messages off. */
const OF_CONNECTION =
  /^(?:host|connection|content-length|authorization|x-api-key|x-goog-api-key|x-request-id|cdn-loop|sec-websocket-(?:key|extensions))$/;

export function normalised(requests: readonly SeenRequest[], home: string): string[] {
  return requests
    .map(({ method, path, headers, body }) => {
      const sent = Object.entries(headers).filter(([name]) => !OF_CONNECTION.test(name));
      const content: unknown = body === '' ? null : JSON.parse(withoutRun(body, home));
      const said = sent.map(([name, value]) => [name, inOrder(ifJson(withoutRun(value, home)))] as const);
      return JSON.stringify(
        { method, path, headers: inOrder(Object.fromEntries(said)), body: inOrder(content) },
        null,
        1,
      );
    })
    .sort();
}

/** Some headers and fields contain JSON. */
function ifJson(text: string): unknown {
  if (!text.startsWith('{')) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** With the members of all objects in the order of their names: some agents put them in any order. */
function inOrder(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith('{') ? ifString(value) : value;
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, inOrder(member)]),
  );
}

function ifString(text: string): unknown {
  const value = ifJson(text);
  return typeof value === 'string' ? value : inOrder(value);
}

/** The lines that only one of two normalised runs has, `-` before those of the first. Empty if they are equal. */
export function differences(first: readonly string[], second: readonly string[]): string[] {
  const [a, b] = [first, second].map((requests) => requests.join('\n').split('\n')) as [string[], string[]];
  if (a.join('\n') === b.join('\n')) return [];
  const only = (lines: string[], others: string[], mark: string) =>
    lines.filter((line) => !others.includes(line)).map((line) => mark + line.slice(0, 500));
  return ['the requests differ', ...only(a, b, '-'), ...only(b, a, '+')];
}
