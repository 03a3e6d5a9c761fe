/** JSON documents of issuers: small, within a few seconds, and from exactly the address that was asked for. */
import type { Clock } from '../../core/ports.js';
import { sentenceOf } from '../../core/refusal.js';
import type { Forwarding } from '../proxy/forwarder.js';
import type { Upstreams } from '../proxy/upstreams.js';

/** @throws {DocumentUnavailable} */
export type ReadDocument = (url: URL) => Promise<unknown>;

/** The message says why, as the end of a sentence. */
export class DocumentUnavailable extends Error {}

/** Two of them, and the database, take less than a client waits. */
const TIMEOUT_MS = 4_000;
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/**
 * Asks as requests are forwarded to providers: with their verification of certificates, their timeout to connect, and UPSTREAM_PROXY. It
 * follows no redirect.
 */
export function documentsOf(
  upstreams: Pick<Upstreams, 'of'>,
  clock: Pick<Clock, 'after'>,
  userAgent: string,
): ReadDocument {
  return (url) =>
    new Promise((resolve, reject) => {
      const { forwarder } = upstreams.of(url.origin);
      const pieces: Buffer[] = [];
      let bytes = 0;
      let forwarding: Forwarding | null = null;
      let isOver = false;
      const end = (settle: () => void) => {
        if (isOver) return;
        isOver = true;
        cancelTimeout();
        if (!forwarding) slot.release();
        settle();
      };
      const fail = (why: string) => {
        end(() => {
          reject(new DocumentUnavailable(why));
        });
        forwarding?.abort();
      };
      const send = () => {
        if (isOver) return;
        const headers = ['accept', 'application/json', 'user-agent', userAgent];
        const target = url.pathname + url.search;
        forwarding = forwarder.forward({ method: 'GET', target, headers, body: null }, slot, {
          head(status) {
            if (status !== 200) fail(`it responded with status ${status}`);
          },
          data(chunk) {
            bytes += chunk.length;
            if (bytes > MAX_DOCUMENT_BYTES) fail(`its response is larger than ${MAX_DOCUMENT_BYTES / 1024} KiB`);
            else if (!isOver) pieces.push(chunk);
            return true;
          },
          end() {
            try {
              const document: unknown = JSON.parse(Buffer.concat(pieces).toString('utf8'));
              end(() => {
                resolve(document);
              });
            } catch {
              fail('its response is not JSON');
            }
          },
          fail(refusal) {
            // The forwarder has a refusal of its own for a 401.
            fail(refusal.kind === 'upstream_key_rejected' ? 'it responded with status 401' : sentenceOf(refusal));
          },
        });
      };
      const cancelTimeout = clock.after(TIMEOUT_MS, () => {
        fail(`it did not respond within ${TIMEOUT_MS / 1000} s`);
      });
      const slot = forwarder.reserve();
      if (slot.granted) {
        slot.granted.then(send, () => {
          fail('no connection became free');
        });
      } else send();
    });
}
