/** What every agent does when it is refused for good, and the declared exceptions. */
import { availableParallelism, loadavg } from 'node:os';
import type { RefusalId } from './scene.js';

/** After a refusal that no retry can change, an agent ends within this time and number of requests, and shows the message. */
export const GOAL = { seconds: 3, requests: 2 } as const;

/** How long an agent is watched that does not end by itself. */
export const WATCHED_SECONDS = 8;

/** How much longer things take because others use the processors too. */
export const slowness = (): number => Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());

export interface Exception {
  /** Title of an agent. */
  agent: string;
  refusals: readonly RefusalId[];
  /** At most; null: it does not end while it is watched. */
  seconds: number | null;
  /** At most, at the daemon. */
  requests: number;
  showsMessage: boolean;
  why: string;
}

export const EXCEPTIONS: readonly Exception[] = [
  {
    agent: 'aider',
    refusals: ['an inactive project', 'a spent cap', 'a route that is not allowed', 'a model that is not allowed'],
    ...{ seconds: null, requests: 8, showsMessage: true },
    why: "litellm looks like OpenAI's SDK, and aider tries again after every status but 400 and 401",
  },
  {
    agent: 'Continue',
    refusals: ['a spent cap'],
    ...{ seconds: null, requests: 8, showsMessage: false },
    why: "it looks like OpenAI's SDK, and tries again after every 429",
  },
];
