/**
 * The past of the demo: weeks of changes, and a week of traffic. It is made by the daemon's own parts while its clock moves from then
 * to now: operators use the management API, each request passes admission, and its record goes to the same recorders as that of a real
 * request. Only what the provider responded is made up.
 */
import { randomUUID } from 'node:crypto';
import type { ManagementClient } from '../api/client.js';
import { addedNano, NANO_PER_USD, usdOf } from '../api/money.js';
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { Daemon } from '../compose.js';
import type { Pass } from '../core/account.js';
import { budgetsNow, type Spending } from '../core/budget/budgets.js';
import { type ContentFacts, NO_CONTENT_FACTS, type RequestEnded } from '../core/events.js';
import { Refusal, sentenceOf } from '../core/refusal.js';
import { codeOf, statusOf } from '../http/problems.js';
import {
  BYTES_PER_TOKEN,
  type DemoProject,
  type DemoToken,
  MODEL_FACTS,
  MODELS,
  maxTokensOf,
  NEARLY_SPENT,
  OUTAGE,
  PROJECTS,
  type Rhythm,
  TOKENS,
  TRAFFIC,
  type Traffic,
  WEEK_HOURS,
} from './cast.js';
import type { PastClock } from './past-clock.js';
import { randomNumbers } from './random.js';

const HOUR_MS = MS_PER_UNIT.h;
const SEED = 20_260_101;
const REVOKED_KEY = 'sk-demo-key-that-the-provider-has-revoked';
const KEY_REJECTED = new Refusal('upstream_key_rejected', "upstream rejected the project's key");

export interface PastOptions {
  daemon: Pick<Daemon, 'admission' | 'record' | 'usage' | 'costs'>;
  clock: PastClock;
  /** The present, in ms since the epoch: times in cast.ts count back from it. */
  nowMs: number;
  /** A client of the management API for an operator, such as `ana@laptop`. */
  clientOf: (user: string, reason?: string) => ManagementClient;
  /** The upstream key that the stand-in provider expects. */
  upstreamKey: string;
}

/** How long before the present the past begins, in ms. */
export const PAST_MS = (Math.max(...PROJECTS.map(({ created }) => created)) + 1) * HOUR_MS;

interface Step {
  hoursAgo: number;
  run: () => void | Promise<void>;
}

/** How the provider responded. */
type Reply = Pick<RequestEnded, 'outcome' | 'status'> | Refusal;

/** What a request record contains of the response. */
type Response = ContentFacts &
  Pick<
    RequestEnded,
    'outcome' | 'status' | 'code' | 'problem' | 'isForwarded' | 'upstreamMs' | 'firstByteMs' | 'durationMs'
  >;

export class Past {
  readonly #options: PastOptions;
  readonly #random = randomNumbers(SEED);
  readonly #projectIds = new Map<string, string>();
  readonly #tokens = new Map<string, { id: string; secret: string }>();
  /** In nano-USD, by the names of tokens. */
  readonly #spentNano = new Map<string, number>();

  constructor(options: PastOptions) {
    this.#options = options;
  }

  /** Creates everything, and moves the clock to the present. */
  async create(): Promise<void> {
    const { clock, daemon, nowMs } = this.#options;
    const steps = [
      ...PROJECTS.flatMap((project) => this.#changesOf(project)),
      ...TOKENS.flatMap((token) => [...this.#changesOfToken(token), ...this.#requestsOf(token)]),
      { hoursAgo: NEARLY_SPENT.hoursAgo, run: () => this.#limitSpending() },
    ].sort((one, other) => other.hoursAgo - one.hoursAgo);
    for (const { hoursAgo, run } of steps) {
      clock.moveTo(nowMs - hoursAgo * HOUR_MS);
      const running = run();
      if (running) await running;
    }
    clock.moveTo(Infinity);
    await daemon.usage.flush();
  }

  /** Whether a project belongs to the simulated clients. */
  hasProject(id: string | null): boolean {
    return id !== null && [...this.#projectIds.values()].includes(id);
  }

  /** The secret of a token of the cast. */
  secretOf(name: string): string {
    return this.#tokenOf(name).secret;
  }

  #tokenOf(name: string): { id: string; secret: string } {
    const token = this.#tokens.get(name);
    if (!token) throw new Error(`the demo has not issued a token ${name} yet`);
    return token;
  }

  #idOf(project: string): string {
    return this.#projectIds.get(project) ?? '';
  }

  #changesOf({ name, by, created, deactivated, keyRejected, budget }: DemoProject): Step[] {
    const { clientOf, upstreamKey } = this.#options;
    const create = async () => {
      const api_key = keyRejected === undefined ? upstreamKey : REVOKED_KEY;
      this.#projectIds.set(name, (await clientOf(by).createProject({ name, api_key, budget })).id);
    };
    const deactivate = async () => {
      await clientOf(by, deactivated?.reason).updateProject(this.#idOf(name), { is_active: false });
    };
    const steps: Step[] = [{ hoursAgo: created, run: create }];
    return deactivated ? [...steps, { hoursAgo: deactivated.hoursAgo, run: deactivate }] : steps;
  }

  #changesOfToken({ name, project, issued, left, cap = 0, by, budget, revoked }: DemoToken): Step[] {
    const { clientOf } = this.#options;
    const issue = async () => {
      const { id, token } = await clientOf(by).createToken({
        project_id: this.#idOf(project),
        name,
        duration_minutes: Math.round((issued + left) * 60),
        max_requests: cap,
        budget,
      });
      this.#tokens.set(name, { id, secret: token });
    };
    const revoke = async () => {
      await clientOf(revoked?.by ?? by, revoked?.reason).updateToken(this.#tokenOf(name).id, { is_active: false });
    };
    const steps: Step[] = [{ hoursAgo: issued, run: issue }];
    return revoked ? [...steps, { hoursAgo: revoked.hoursAgo, run: revoke }] : steps;
  }

  /** Gives a token a budget of which little is left. */
  async #limitSpending(): Promise<void> {
    const { name, by, spentShare, mode } = NEARLY_SPENT;
    const cents = Math.ceil((100 * (this.#spentNano.get(name) ?? 0)) / (spentShare * NANO_PER_USD));
    const usd = usdOf((Math.max(1, cents) * NANO_PER_USD) / 100);
    await this.#options.clientOf(by).updateToken(this.#tokenOf(name).id, { budget: { usd, period: 'none', mode } });
  }

  #requestsOf({ name, project, issued }: DemoToken): Step[] {
    const traffic = TRAFFIC[name];
    if (!traffic) return [];
    const { perHour, rhythm, from = WEEK_HOURS, until = 0 } = traffic;
    const keyRejected = PROJECTS.find((each) => each.name === project)?.keyRejected ?? -1;
    const steps: Step[] = [];
    for (let hour = Math.floor(Math.min(from, issued)); hour > until; hour--) {
      const share = shareOf(rhythm, this.#options.nowMs - hour * HOUR_MS);
      const count = Math.round(perHour * share * (0.6 + 0.8 * this.#random()));
      for (let nr = 0; nr < count; nr++) {
        const hoursAgo = hour - this.#random();
        const reply = hoursAgo < keyRejected ? KEY_REJECTED : this.#reply(traffic, hoursAgo);
        steps.push({ hoursAgo, run: () => this.#request(name, traffic, reply) });
      }
    }
    return steps;
  }

  #reply({ model }: Traffic, hoursAgo: number): Reply {
    if (model === MODELS.retired) return { outcome: 'upstream_refused', status: 404 };
    const isOutage = hoursAgo < OUTAGE.from && hoursAgo > OUTAGE.until;
    if (isOutage && this.#random() < OUTAGE.share) return { outcome: 'upstream_error', status: 503 };
    const luck = this.#random();
    if (luck < 0.003) return { outcome: 'upstream_error', status: 500 };
    if (luck < 0.008) return { outcome: 'upstream_refused', status: 429 };
    if (luck < 0.011) return { outcome: 'client_closed', status: 200 };
    return { outcome: 'ok', status: 200 };
  }

  /** A request at the time of the clock: it passes admission, which may refuse it, and is counted and recorded. */
  async #request(token: string, { model, ip, cachedShare = 0 }: Traffic, reply: Reply): Promise<void> {
    const { daemon, clock } = this.#options;
    const { admission } = daemon;
    const isHit = isOk(reply) && cachedShare > 0 && this.#random() < cachedShare;
    const responded = this.#forwarded(model, reply);
    const common = {
      requestId: randomUUID(),
      timeMs: clock.now(),
      clientIp: ip,
      method: 'POST',
      path: '/v1/chat/completions',
      cache: isHit ? ('hit' as const) : ('miss' as const),
      bytesIn: 200 + BYTES_PER_TOKEN * (responded.usage?.promptTokens ?? 100),
      bytesOut: 120,
      upstreamRequestId: null,
      streamed: false,
    };
    try {
      const pass = await admission.admit(this.secretOf(token));
      try {
        if (isHit) admission.countHit(pass);
        else await admission.draw(pass, false, false, true, spendingOf(pass, model, common.bytesIn));
        const { projectId, tokenId, tokenName, projectName, obfuscated } = pass;
        const subject = { projectId, tokenId, tokenName, projectName, obfuscated };
        const costNano = isHit ? 0 : this.#charge(pass, token, responded);
        const ofHit = isHit && { isForwarded: false, usage: null, ...NO_TIMES };
        daemon.record({ ...common, ...subject, ...responded, costNano, ...ofHit });
      } finally {
        admission.finish(pass);
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const refusal = { ...refused(error), costNano: 0, isForwarded: false, ...NO_TIMES };
      daemon.record({ ...common, cache: 'miss', ...NO_SUBJECT, ...error.subject, ...refusal });
    }
  }

  /** Charges budgets, as the proxy does. @returns the cost of the request in nano-USD; null if it is unknown. */
  #charge(pass: Pass, token: string, { model, usage, outcome, status }: Response): number | null {
    const {
      daemon: { admission, costs },
      clock,
    } = this.#options;
    const admittedAtMs = clock.now();
    if (status >= 400) {
      admission.budgets.settle(pass, { kind: 'unspent', usage: null, costNano: 0, admittedAtMs });
      return 0;
    }
    const costNano = costs.costOf(pass, model, usage && { ...NO_DETAILS, ...usage }, admittedAtMs);
    admission.budgets.settle(pass, { kind: outcome === 'ok' ? 'complete' : 'cut', usage, costNano, admittedAtMs });
    this.#spentNano.set(token, addedNano(this.#spentNano.get(token) ?? 0, costNano ?? 0));
    return costNano;
  }

  #forwarded(model: string, reply: Reply): Response {
    const { prompt, completion, usualMs } = MODEL_FACTS[model] ?? { prompt: 0, completion: 0, usualMs: 100 };
    const isServed = isOk(reply);
    // One in twenty takes much longer than usual.
    const upstreamMs = (isServed ? usualMs : 60) * (0.5 + this.#random() + (this.#random() < 0.05 ? 4 : 0));
    const promptTokens = Math.round(prompt * (0.4 + 1.2 * this.#random()));
    const completionTokens = Math.round(completion * (0.4 + 1.2 * this.#random()));
    const usage = {
      promptTokens,
      completionTokens,
      totalTokens: promptTokens + completionTokens,
      cacheReadTokens: null,
      cacheWriteTokens: null,
    };
    return {
      ...NO_CONTENT_FACTS,
      ...(reply instanceof Refusal ? refused(reply) : { ...reply, code: null, problem: null }),
      model,
      usage: isServed && reply.outcome === 'ok' ? usage : null,
      isForwarded: true,
      upstreamMs,
      firstByteMs: upstreamMs + 1,
      durationMs: upstreamMs + 2 + 4 * (isServed ? completionTokens : 0) * this.#random(),
    };
  }
}

const isOk = (reply: Reply): reply is Exclude<Reply, Refusal> => !(reply instanceof Refusal) && reply.status === 200;

/** What a request may spend, as the proxy reads it from its body. Null without a budget. */
function spendingOf(pass: Pass, model: string, bytes: number): Spending | null {
  const bound = { model, inputTokens: bytes, outputTokens: maxTokensOf(model), answers: 1 };
  return budgetsNow(pass) && { model: () => model, bytes, bound: () => bound };
}

const NO_DETAILS = {
  cacheWrite1hTokens: null,
  reasoningTokens: null,
  audioInputTokens: null,
  audioOutputTokens: null,
  reportedNano: null,
};

const NO_SUBJECT = { projectId: null, tokenId: null, tokenName: null, projectName: null, obfuscated: null };
const NO_TIMES = { durationMs: 1, upstreamMs: null, firstByteMs: 1 };

function refused(refusal: Refusal) {
  return {
    ...NO_CONTENT_FACTS,
    status: statusOf(refusal),
    code: codeOf(refusal),
    problem: sentenceOf(refusal),
    outcome: refusal.kind === 'upstream_key_rejected' ? ('upstream_error' as const) : ('refused' as const),
  };
}

/** The share of the busiest hour, from 0 to 1, by the hour and the day of the week in UTC. */
function shareOf(rhythm: Rhythm, timeMs: number): number {
  const date = new Date(timeMs);
  const hour = date.getUTCHours();
  if (rhythm === 'steady') return 0.8;
  if (rhythm === 'night') return hour >= 1 && hour < 5 ? 1 : 0.04;
  const isWeekend = date.getUTCDay() % 6 === 0;
  const atWork = Math.max(0.06, Math.sin(((hour - 6) * Math.PI) / 13));
  return hour < 6 || hour > 19 ? 0.06 : isWeekend ? atWork / 5 : atWork;
}
