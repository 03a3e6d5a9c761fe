/** Checks a provider's key with one request to the provider: before the key is stored, or later. */
import type { WireProjectCheck } from '../../api/contract.js';
import type { KeyCheck, ProjectCheckResult, UpstreamAuth } from '../../api/vocabulary.js';
import type { Clock } from '../../core/ports.js';
import { Refusal, sentenceOf } from '../../core/refusal.js';
import { ClientGone } from '../connection-ends.js';
import type { Forwarding } from './forwarder.js';
import { upstreamRequestHeaders } from './headers.js';
import type { ProjectUpstream, Upstreams } from './upstreams.js';

/** Lists the models, which costs nothing. By the header for the key, because providers with the same header have the same API. */
const MODELS: Record<UpstreamAuth, { target: string; headers: readonly string[] }> = {
  bearer: { target: '/v1/models', headers: [] },
  'x-api-key': { target: '/v1/models', headers: ['anthropic-version', '2023-06-01'] },
  'api-key': { target: '/openai/models?api-version=2024-10-21', headers: [] },
  'x-goog-api-key': { target: '/v1beta/models', headers: [] },
};

const MAX_CHECK_MS = 10_000;
/** Checks share the upstream connections with requests of clients. */
const MAX_CONCURRENT_CHECKS = 4;

export interface KeyToCheck extends ProjectUpstream {
  upstreamKey: string;
  requestId: string;
  /** Aborted when the operator no longer waits. */
  signal: AbortSignal;
}

/** The status of the provider's response, or why there was none, as the end of a sentence. */
export type Probed = { status: number; latencyMs: number } | { failure: string };

/**
 * Sends one request with a key to the provider.
 *
 * @throws {Refusal} `unavailable` if too many checks are running.
 * @throws {ClientGone} if the operator has disconnected.
 */
export type ProbeProvider = (key: KeyToCheck) => Promise<Probed>;

export interface KeyCheckOptions {
  upstreams: Pick<Upstreams, 'of'>;
  clock: Pick<Clock, 'after' | 'monotonic'>;
  loopMark: string;
}

/**
 * Sends keys as requests of clients are sent: to the base URL of the project, with the same verification of certificates and connection timeout. It
 * follows no redirect. It reads the response's status only, because a provider may quote the key in its text.
 */
export function providerProbe({ upstreams, clock, loopMark }: KeyCheckOptions): ProbeProvider {
  let running = 0;
  return async (key) => {
    if (running === MAX_CONCURRENT_CHECKS) {
      throw new Refusal('unavailable', 'too many keys are being checked, try again', { retryAfterSeconds: 1 });
    }
    running += 1;
    try {
      return await responseTo(key);
    } finally {
      running -= 1;
    }
  };

  /** @throws {ClientGone} */
  function responseTo({ upstreamKey, upstreamBaseUrl, upstreamAuth, requestId, signal }: KeyToCheck): Promise<Probed> {
    const startedMs = clock.monotonic();
    const upstream = upstreams.of(upstreamBaseUrl);
    const { forwarder } = upstream;
    const models = MODELS[upstreamAuth];
    return new Promise((resolve, reject) => {
      let forwarding: Forwarding | null = null;
      let isOver = false;
      const end = (settle: () => void) => {
        if (isOver) return;
        isOver = true;
        cancelTimeout();
        signal.removeEventListener('abort', onAbort);
        settle();
        if (!forwarding) slot.release();
        // The rest of the response has no limit, so it is not read. This also returns the connection.
        forwarding?.abort();
      };
      const failed = (failure: string) => {
        end(() => {
          resolve({ failure });
        });
      };
      const onAbort = () => {
        end(() => {
          reject(new ClientGone());
        });
      };
      const responded = (status: number) => {
        end(() => {
          resolve({ status, latencyMs: Math.round(clock.monotonic() - startedMs) });
        });
      };
      const send = () => {
        if (isOver) return;
        const fields = { forwarded: ['accept', 'application/json', ...models.headers], cdnLoop: undefined };
        const headers = upstreamRequestHeaders(fields, { upstreamKey, upstreamAuth, requestId, loopMark });
        forwarding = forwarder.forward(
          { method: 'GET', target: upstream.pathOf(models.target), headers, body: null },
          slot,
          {
            head: responded,
            data: () => true,
            end: () => undefined,
            fail(refusal) {
              // The forwarder has a refusal of its own for a 401.
              if (refusal.kind === 'upstream_key_rejected') responded(401);
              else failed(sentenceOf(refusal));
            },
          },
        );
      };
      const cancelTimeout = clock.after(MAX_CHECK_MS, () => {
        failed(`the provider did not respond within ${MAX_CHECK_MS / 1000} s`);
      });
      const slot = forwarder.reserve();
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
      if (slot.granted) {
        slot.granted.then(send, () => {
          failed('no upstream connection became free');
        });
      } else send();
    });
  }
}

/**
 * Result for a key that is to be stored.
 *
 * @throws {Refusal} `key_refused` or `key_not_checked`.
 */
export function keyCheckOf(probed: Probed): KeyCheck {
  const { result, reason } = projectCheckOf(probed);
  if (result === 'key_refused') throw new Refusal('key_refused', `${reason ?? ''}; nothing was changed`);
  if (result === 'provider_error' || result === 'unreachable') throw notChecked(reason ?? '');
  return result;
}

/** Result for a project, as in the API. */
export function projectCheckOf(probed: Probed): WireProjectCheck {
  if ('failure' in probed) {
    return { result: 'unreachable', reason: probed.failure, status: null, latency_ms: null };
  }
  const { status, latencyMs } = probed;
  const result = resultOf(status);
  return { result, reason: REASONS[result](status), status, latency_ms: latencyMs };
}

function resultOf(status: number): Exclude<ProjectCheckResult, 'unreachable'> {
  if (status < 300) return 'accepted';
  if (status === 401 || status === 403) return 'key_refused';
  return status >= 500 ? 'provider_error' : 'not_confirmed';
}

const REASONS: Record<ReturnType<typeof resultOf>, (status: number) => string | null> = {
  accepted: () => null,
  key_refused: (status) => `the provider refused the key with status ${status}`,
  provider_error: (status) => `the provider responded with status ${status}`,
  not_confirmed: (status) => `the provider responded with status ${status}, which says nothing about the key`,
};

const notChecked = (reason: string) =>
  new Refusal(
    'key_not_checked',
    `the key could not be checked: ${reason}. Nothing was changed. To store the key without a check, omit check_key`,
  );
