/** Usage reports: however they are grouped, the sums are those of the requests that were made. */
import { expect } from 'chai';
import type { WireUsageLine } from '../../../daemon/api/contract.js';
import type { HourlyUse } from '../test-data.js';
import type { ContractContext } from './context.js';

const DAY_MS = 86_400_000;
const REPORTS = [
  '',
  'token',
  'project',
  'model',
  'hour',
  'day',
  'token,model',
  'project,day',
  'project,hour',
  'model,day',
  'token,hour',
  'token,day',
  'project,model,hour',
  'token,project,model,day',
  'token,project,model,hour',
];

type Counts = [requests: number, promptTokens: number, completionTokens: number];

const PARTS: Record<string, (used: HourlyUse) => string> = {
  token: ({ tokenId }) => tokenId,
  project: ({ projectId }) => projectId,
  model: ({ model }) => model,
  hour: ({ hourMs }) => new Date(hourMs).toISOString(),
  day: ({ hourMs }) => new Date(hourMs - (hourMs % DAY_MS)).toISOString(),
};

function summed(usage: readonly HourlyUse[], by: readonly string[]): Record<string, Counts> {
  const sums: Record<string, Counts> = {};
  for (const used of usage) {
    const sum = (sums[by.map((part) => PARTS[part]?.(used)).join(' ')] ??= [0, 0, 0]);
    sum[0] += used.requests;
    sum[1] += used.promptTokens;
    sum[2] += used.completionTokens;
  }
  return sums;
}

function reported(lines: readonly WireUsageLine[], by: readonly string[]): Record<string, Counts> {
  const named: Record<string, string> = { token: 'token_id', project: 'project_id' };
  const keyOf = (line: WireUsageLine) =>
    by.map((part) => String(line[(named[part] ?? part) as keyof WireUsageLine])).join(' ');
  return Object.fromEntries(
    lines.map((line) => [keyOf(line), [line.requests, line.prompt_tokens, line.completion_tokens]]),
  );
}

export function behavesInUsage(given: ContractContext): void {
  describe('usage', () => {
    const since = () => new Date(given.testData.beganMs - 30 * DAY_MS).toISOString();
    const report = async (query: string) =>
      given.system.ask<WireUsageLine[]>('GET', `/manage/usage?since=${since()}&${query}`);
    /** An instance writes its last counts when it is asked itself. */
    before(async () => {
      for (let at = 0; at < given.system.count; at++) await given.system.ask('GET', '/manage/usage', { at });
    });

    for (const by of REPORTS) {
      it(`by ${by || 'nothing'} adds up to the requests that were made`, async () => {
        const parts = by.split(',').filter(Boolean);
        const lines = await report(by && `by=${by}`);
        expect(reported(lines, parts)).to.deep.equal(summed(given.testData.usage, parts));
        expect(lines.reduce((sum, { requests }) => sum + requests, 0)).to.equal(
          given.testData.usage.reduce((sum, { requests }) => sum + requests, 0),
        );
      });
    }

    it('of one project, of one token and of some hours is a part of that', async () => {
      const { usage } = given.testData;
      const [{ projectId, tokenId, hourMs }] = usage.slice(-9) as [HourlyUse];
      const of = (lets: (used: HourlyUse) => boolean) => summed(usage.filter(lets), ['model']);
      const models = async (query: string) => reported(await report(`by=model&${query}`), ['model']);
      expect(await models(`project_id=${projectId}`)).to.deep.equal(of((used) => used.projectId === projectId));
      expect(await models(`token_id=${tokenId}`)).to.deep.equal(of((used) => used.tokenId === tokenId));
      const until = hourMs + 60 * 3_600_000;
      const lines = await given.system.ask<WireUsageLine[]>(
        'GET',
        `/manage/usage?by=model&since=${new Date(hourMs).toISOString()}&until=${new Date(until).toISOString()}`,
      );
      expect(reported(lines, ['model'])).to.deep.equal(of((used) => used.hourMs >= hourMs && used.hourMs < until));
    });

    it('has the names of the tokens and projects that it counts', async () => {
      const { tokens, projects } = given.testData;
      const lines = await report('by=token,project');
      for (const { token_id, token_name, project_name, project_id } of lines) {
        expect(token_name).to.equal(tokens.find(({ id }) => id === token_id)?.name);
        expect(project_name).to.equal(projects.find(({ id }) => id === project_id)?.name);
      }
    });

    it('has the same numbers on the command line', async () => {
      const { exitCode, out, err } = await given.system.llmp([
        'usage',
        '--by',
        'token,day',
        '--since',
        '30d',
        '-o',
        'json',
      ]);
      expect(exitCode, err).to.equal(0);
      const parts = ['token', 'day'];
      expect(reported(JSON.parse(out) as WireUsageLine[], parts)).to.deep.equal(summed(given.testData.usage, parts));
    });
  });
}
