/** The clients of the demo at work: a trickle of real requests to its daemon. */
import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { BYTES_PER_TOKEN, MODEL_FACTS, maxTokensOf, TRAFFIC, type Traffic } from './cast.js';
import { randomNumbers } from './random.js';

const SEED = 42;
const QUESTIONS = ['Where is the invoice?', 'Translate this page.', 'Summarize the discussion.', 'Which test failed?'];

export interface LiveTraffic {
  /** Ends all requests in flight. */
  stop(): Promise<void>;
}

/** @param secretOf the secret of a token of cast.ts, by its name. */
export function startLiveTraffic(url: string, secretOf: (name: string) => string): LiveTraffic {
  const ending = new AbortController();
  setMaxListeners(0, ending.signal); // Each client waits for it.
  const random = randomNumbers(SEED);
  const clients = Object.entries(TRAFFIC).flatMap(([name, traffic]) =>
    traffic.perSecond === undefined ? [] : [run(url, secretOf(name), traffic, random, ending.signal)],
  );
  return {
    async stop() {
      ending.abort();
      await Promise.all(clients);
    },
  };
}

/** Sends one request after the other until `signal` is aborted. Its responses do not matter, and neither do failures. */
async function run(url: string, secret: string, traffic: Traffic, random: () => number, signal: AbortSignal) {
  const { model, perSecond = 0, cachedShare = 0 } = traffic;
  const { prompt = 0 } = MODEL_FACTS[model] ?? {};
  for (;;) {
    try {
      // Exponentially distributed, as the pauses between independent requests are.
      await pause((-Math.log(1 - random()) / perSecond) * 1000, undefined, { signal });
      const question = QUESTIONS[Math.floor(random() * QUESTIONS.length)] ?? '';
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          // Its few questions are soon all cached.
          ...(random() < cachedShare && { 'cache-control': 'public' }),
        },
        body: JSON.stringify({
          model,
          max_tokens: maxTokensOf(model),
          messages: [
            { role: 'user', content: question.repeat(1 + Math.floor((prompt * BYTES_PER_TOKEN) / question.length)) },
          ],
        }),
        signal,
      });
      await response.arrayBuffer();
    } catch {
      if (signal.aborted) return;
    }
  }
}
