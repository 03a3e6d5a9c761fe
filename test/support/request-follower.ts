import { type PublishableEvent, NO_CONTENT_FACTS, type RequestEnded } from '../../daemon/core/events.js';
import type { EventBus, FollowStart } from '../../daemon/core/ports.js';

/** A request of a token that has ended. */
export const SOME_REQUEST: RequestEnded = {
  requestId: 'r',
  timeMs: 1_000,
  projectId: 'p',
  tokenId: 't',
  tokenName: null,
  projectName: 'web',
  obfuscated: null,
  clientIp: null,
  method: 'GET',
  path: '/v1/models',
  status: 200,
  code: null,
  problem: null,
  outcome: 'ok',
  isForwarded: true,
  cache: 'miss',
  durationMs: 1.23456,
  upstreamMs: null,
  firstByteMs: null,
  bytesIn: 0,
  bytesOut: 0,
  streamed: false,
  isModelAnswered: false,
  costNano: 0,
  upstreamRequestId: null,
  ...NO_CONTENT_FACTS,
};

export const requestNamed = (requestId: string): PublishableEvent => ({
  kind: 'request',
  ended: { ...SOME_REQUEST, requestId },
});

/** Follows a bus, and notes the IDs of the requests that it receives. */
export class RequestFollower {
  readonly names: string[] = [];
  readonly places: string[] = [];
  readonly #leaving = new AbortController();
  readonly #done: Promise<void>;

  constructor(bus: EventBus, start: FollowStart = null) {
    const read = async () => {
      for await (const events of bus.follow(start, this.#leaving.signal)) {
        for (const { streamId, json } of events) {
          this.places.push(streamId);
          this.names.push((JSON.parse(json) as { request_id: string }).request_id);
        }
      }
    };
    this.#done = read();
  }

  leave(): Promise<void> {
    this.#leaving.abort();
    return this.#done;
  }
}
