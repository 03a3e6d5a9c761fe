/**
 * The clients of another project: requests at a steady rate, whether or not earlier ones have been answered, and how long each took from the
 * moment at which it was due.
 */
import { Agent, request as send } from 'node:http';
import { serve } from './child.js';
import type { SteadyPlan, SteadyRequest } from './plans.js';

const GIVES_UP_AFTER_MS = 20_000;
/** How long the last requests may take after the client was told to stop. */
const LAST_MS = 5_000;
const BODY = JSON.stringify({ model: 'steady', messages: [{ role: 'user', content: 'Hello' }] });

const nowMs = () => performance.timeOrigin + performance.now();

serve(0, ({ url, secret, perSecond }: SteadyPlan) => {
  const requests: SteadyRequest[] = [];
  const underway = new Set<SteadyRequest>();
  const agent = new Agent({ keepAlive: true });
  const headers = {
    Authorization: `Bearer ${secret}`,
    'Content-Type': 'application/json',
    'Content-Length': BODY.length,
  };

  const ask = (atMs: number) => {
    const asked: SteadyRequest = { atMs, tookMs: 0, status: 0 };
    underway.add(asked);
    const finish = (status: number) => {
      if (!underway.delete(asked)) return;
      asked.tookMs = nowMs() - atMs;
      asked.status = status;
      requests.push(asked);
    };
    const options = { method: 'POST', agent, timeout: GIVES_UP_AFTER_MS, headers };
    const outgoing = send(`${url}/v1/chat/completions`, options, (res) => {
      res.resume();
      res.on('error', () => undefined);
      res.once('close', () => {
        finish(res.complete ? (res.statusCode ?? 0) : 0);
      });
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', () => {
      finish(0);
    });
    outgoing.end(BODY);
  };

  const everyMs = 1_000 / perSecond;
  let dueMs = nowMs() + everyMs;
  const timer = setInterval(() => {
    for (; dueMs <= nowMs(); dueMs += everyMs) ask(dueMs);
  }, 2);

  return Promise.resolve({
    ready: {},
    /** Stops. */
    report: async () => {
      clearInterval(timer);
      const untilMs = nowMs() + LAST_MS;
      while (underway.size > 0 && nowMs() < untilMs) await new Promise((resolve) => setTimeout(resolve, 20));
      const unanswered = [...underway].map((asked) => ({ ...asked, tookMs: nowMs() - asked.atMs }));
      return { requests: [...requests, ...unanswered] };
    },
  });
});
