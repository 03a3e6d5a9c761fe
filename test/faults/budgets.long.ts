/**
 * A hard budget while instances and workers are killed: what the provider bills never exceeds it, by the provider's own log. What a killed
 * instance had leased counts as spent, so that a part of the budget may be lost.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { nanoOf } from '../../daemon/api/money.js';
import type { WireProject, WireStatus, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet, type Member } from '../support/fleet.js';
import { seededRandom } from '../support/model.js';
import { json } from '../support/provider.js';
import { TestRedis, WITHOUT_REDIS } from '../support/redis.js';
import { anyOf } from './support/concurrent-requests.js';

const ROUNDS = 3;
const KILLS = 8;
const CLIENTS = 40;
const SEED = 7;
// gpt-4o-mini: 0.15 and 0.60 USD per million tokens.
const [PROMPT_TOKENS, COMPLETION_TOKENS] = [1_000, 5_000];
const NANO_PER_CHAT = PROMPT_TOKENS * 150 + COMPLETION_TOKENS * 600;
const BUDGET_USD = '2.00';
const BUDGET_NANO = 2_000_000_000;
const CHAT = JSON.stringify({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'x'.repeat(PROMPT_TOKENS) }],
  max_tokens: COMPLETION_TOKENS,
});

const setups: { name: string; kind: ServerKind | null; count: number; workers: number }[] = [
  { name: 'two instances with two workers each on PostgreSQL and Redis', kind: 'postgres', count: 2, workers: 2 },
  { name: 'three instances on MariaDB and Redis', kind: 'mysql', count: 3, workers: 1 },
  { name: 'three workers on SQLite', kind: null, count: 1, workers: 3 },
];

for (const { name, kind, count, workers } of setups) {
  const why = kind === null ? '' : WITHOUT[kind] || WITHOUT_REDIS;
  describe(`a hard budget with kills: ${name}${why}`, function () {
    this.timeout(900_000);
    let redis: TestRedis | null = null;
    let fleet: Fleet;

    before(async function () {
      if (why) this.skip();
      redis = kind && (await TestRedis.start());
      fleet = await Fleet.start(kind && (await DatabaseServer.shared(kind)), {
        count,
        env: { WORKERS: String(workers), ...(redis && { REDIS_ADDR: redis.address }) },
      });
    });
    after(async () => {
      if (why) return;
      await fleet.stop();
      await redis?.stop();
    });

    it(`is not exceeded in ${ROUNDS} rounds with ${KILLS} kills each, and what is shown covers what was billed`, async () => {
      const random = seededRandom(SEED);
      for (let round = 1; round <= ROUNDS; round++) {
        const project = await fleet.createProject();
        const token = await fleet.createToken(project.id, 0, { budget: { usd: BUDGET_USD, mode: 'hard' } });
        const billed = countBilled(fleet, random);
        const end = new AbortController();
        const clients = Array.from({ length: CLIENTS }, () => askUntil(end.signal, fleet, token, random));
        for (let kill = 0; kill < KILLS; kill++) {
          await sleep(200 + random() * 600);
          await killOne(anyOf(fleet.members, random), workers, random);
        }
        await eventually('the budget is exhausted', async () => (await status(fleet, token)) === 402, 240_000);
        end.abort();
        await Promise.all(clients);
        const spent = await settled(fleet, token, project);
        const said = `round ${round}: ${billed.nano / 1e9} billed, ${spent / 1e9} counted`;
        expect(billed.nano, said)
          .to.be.at.most(BUDGET_NANO)
          .and.above(BUDGET_NANO / 2);
        expect(spent, said).to.be.within(billed.nano, BUDGET_NANO);
        console.log(`      ${said}`);
      }
    });
  });
}

/** Counts what arrives at the provider, which bills it even if nobody waits for the response any more. */
function countBilled(fleet: Fleet, random: () => number): { nano: number } {
  const billed = { nano: 0 };
  const usage = {
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: COMPLETION_TOKENS,
    total_tokens: PROMPT_TOKENS + COMPLETION_TOKENS,
  };
  fleet.provider.answer = async (_req, res) => {
    billed.nano += NANO_PER_CHAT;
    await sleep(random() * 40);
    json(res, 200, { object: 'chat.completion', model: 'gpt-4o-mini', choices: [], usage });
  };
  return billed;
}

async function ask(member: Member, { token }: WireTokenCreated): Promise<number | null> {
  try {
    const response = await fetch(`${member.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
      body: CHAT,
      signal: AbortSignal.timeout(15_000),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return null;
  }
}

async function askUntil(end: AbortSignal, fleet: Fleet, token: WireTokenCreated, random: () => number): Promise<void> {
  while (!end.aborted) {
    const { up } = fleet;
    const answered = up.length === 0 ? null : await ask(anyOf(up, random), token);
    if (answered !== 200) await sleep(50);
  }
}

/** Of one request to each instance: 402 only if all say so. */
async function status(fleet: Fleet, token: WireTokenCreated): Promise<number | null> {
  const statuses = await Promise.all(fleet.up.map((member) => ask(member, token)));
  return statuses.find((it) => it !== 402) ?? (statuses.length === 0 ? null : 402);
}

/** Kills an instance and starts it again, or one of its workers, which its primary replaces. */
async function killOne(member: Member, workers: number, random: () => number): Promise<void> {
  const pids = workers > 1 ? await workersOf(member) : [];
  if (pids.length > 0 && random() < 0.7) {
    try {
      process.kill(anyOf(pids, random), 'SIGKILL');
    } catch {
      // It has just ended.
    }
    return;
  }
  await member.kill();
  await member.begin();
}

/** The processes of its workers; none while it does not answer. */
async function workersOf(member: Member): Promise<number[]> {
  try {
    const answer = await member.manage('GET', '/manage/status');
    return (answer.body as WireStatus).workers.map(({ pid }) => pid);
  } catch {
    return [];
  }
}

/** Has killed instances expire, and waits until nothing is leased. @returns what is counted, in nano-USD. */
async function settled(fleet: Fleet, token: WireTokenCreated, project: WireProject): Promise<number> {
  if (fleet.members.length > 1) await fleet.expireSilent(fleet.at(0));
  let spent: WireToken['spent'] | undefined;
  await eventually(
    'nothing is reserved',
    async () => {
      const [ofToken, ofProject] = await Promise.all([
        fleet.at(0).manage('GET', `/manage/tokens/${token.id}`),
        fleet.at(0).manage('GET', `/manage/projects/${project.id}`),
      ]);
      ({ spent } = ofToken.body as WireToken);
      return spent.reserved_usd === '0.00' && (ofProject.body as WireProject).spent.reserved_usd === '0.00';
    },
    90_000,
  );
  return nanoOf(spent?.usd ?? '') ?? NaN;
}
