import type { MemoryResponseCache } from '../../daemon/store/memory/response-cache.js';

interface Wanted {
  /** The number of the first. */
  from: number;
  count: number;
  bodyBytes: number;
}

const HOUR_MS = 3_600_000;

/** A separate string, as one that arrived over a connection: not a slice of another, nor shared with one. */
const text = (content: string): string => Buffer.from(content).toString('latin1');

/** Stores responses to as many different requests in a cache, each as the proxy makes it. */
export function storeDistinctResponses(cache: MemoryResponseCache, { from, count, bodyBytes }: Wanted): void {
  for (let i = from; i < from + count; i++) {
    const place = {
      projectId: '2f1c0f0e-7d43-4a8e-9b55-0c9e8f3c1a77',
      resource: `GET ${text(`/v1/models?page=${i}`)}`,
      variant: text(`64:${'d'.repeat(64)}0:3:*/*-2:en--`),
    };
    const { writeLease } = cache.lookUp(place, { mayRead: true, mayStore: true });
    const headers = ['Content-Type', 'application/json', 'ETag', `"v${i}"`, 'Cache-Control', 'max-age=3600'].map(text);
    const body = Buffer.allocUnsafeSlow(bodyBytes).fill(i & 0xff);
    const content = { kind: 'answer', status: 200, headers, body, ageMs: 0, isForOptedIn: false } as const;
    void writeLease?.store([{ key: place, entry: { content, freshMs: HOUR_MS, keepMs: HOUR_MS } }]);
  }
}
