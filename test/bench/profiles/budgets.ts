/** Chats with a token without a budget, with a soft and with a hard one: what it costs to reserve and to charge. */
import type { Budget } from '../../../daemon/api/vocabulary.js';
import { startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import { CHAT } from '../requests.js';
import { compare, idleWarning, ratio, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const WITHOUT = 'without a budget';
// More than any run spends.
const PLENTY = { usd: '1000000.00', period: 'none' } as const;
// A hard budget needs to know how long the response can be.
const BOUNDED_CHAT = { ...CHAT, body: JSON.stringify({ ...(JSON.parse(CHAT.body ?? '') as object), max_tokens: 100 }) };
const MODES = ['soft', 'hard'] as const satisfies readonly Budget['mode'][];
const nameOf = (mode: Budget['mode']) => `with a ${mode} budget`;

export async function budgets(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const measurable = async (name: string, budget: Budget | null) => {
    const service = await startDaemon(bench, provider.url);
    const target = await service.targetWithToken(0, { budget });
    return { name, service, target: { ...target, asked: BOUNDED_CHAT } };
  };
  const services = [await measurable(WITHOUT, null)];
  for (const mode of MODES) services.push(await measurable(nameOf(mode), { ...PLENTY, mode }));
  const rounds = await compare(bench, services);
  return {
    rows: rowsOf(rounds),
    warning: idleWarning(rounds, WITHOUT),
    figures: MODES.map((mode) => ({
      what: `chats per CPU second, ${nameOf(mode)} against without`,
      value: ratio(rounds, WITHOUT, nameOf(mode), ({ cpuUs }) => cpuUs),
      unit: '',
      goal: { atLeast: 0.9 },
    })),
  };
}
