/** A daemon with more than a day of traffic, for tests and screenshots. */
import type { ServerResponse } from 'node:http';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { completion, models, problem } from '../../daemon/demo/responses.js';
import { TestClock } from '../support/clock.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { json, startProvider } from '../support/provider.js';

const HOUR_MS = 3_600_000;
const HOURS = 30;

export interface AdminFixture {
  daemon: TestDaemon;
  projects: Record<string, WireProject>;
  tokens: Record<string, WireTokenCreated>;
  stop(): Promise<void>;
}

/** Number of requests in an hour of the day: busy by day, quiet at night. */
const busyAt = (hour: number) => Math.round(3 + 12 * Math.max(0, Math.sin((hour - 6) / 4.2)) + ((hour * 7) % 4));

const MODELS = ['gpt-4o-mini', 'gpt-4o-mini', 'gpt-4o', 'o4-mini', 'gpt-4o-mini', 'gpt-5-typo'] as const;

function answerChat(res: ServerResponse, { model, size }: { model: string; size: number }): void {
  if (model === 'gpt-5-typo') {
    json(res, 404, problem(`The model ${model} does not exist`, 'model_not_found'));
    return;
  }
  const usage = { prompt_tokens: 9 * size, completion_tokens: 4 * size, total_tokens: 13 * size };
  json(res, 200, { ...completion(model, 'Hello'), usage });
}

const USERS = ['frontend', 'ci-deploy', 'batch-night', 'frontend', 'notebook'] as const;

export async function startAdminFixture(): Promise<AdminFixture> {
  let isFailing = false;
  const provider = await startProvider();
  provider.answer = (req, res, { body }) => {
    if (isFailing) json(res, 503, problem('The server is overloaded', 'overloaded'));
    else if (req.method === 'GET') json(res, 200, models('gpt-4o', 'gpt-4o-mini'), { 'cache-control': 'max-age=600' });
    else answerChat(res, JSON.parse(body.toString()) as { model: string; size: number });
  };
  const clock = new TestClock({ standsStill: false, startMs: Date.now() - HOURS * HOUR_MS });
  const daemon = await startDaemon({
    upstream: provider.url,
    clock,
    env: { HTTP_CACHE_ENABLED: 'true' },
  });

  const projects: Record<string, WireProject> = {};
  for (const name of ['web', 'research', 'batch', 'legacy-import']) {
    projects[name] = await daemon.createProject({ name });
  }
  const tokens: Record<string, WireTokenCreated> = {};
  const issue = async (project: string, name: string, fields: Record<string, unknown>) => {
    tokens[name] = await daemon.createToken(projects[project]!.id, { name, ...fields });
  };
  await issue('web', 'frontend', { duration_hours: 720 });
  await issue('web', 'ci-deploy', { duration_minutes: HOURS * 60 + 42, max_requests: 60 });
  await issue('research', 'notebook', { duration_hours: 33, max_requests: 20 });
  await issue('batch', 'batch-night', { duration_hours: 48, max_requests: 5000 });
  await issue('web', 'old-laptop', { duration_hours: 168 });
  await issue('research', 'review-bot', { duration_hours: 4 });
  await issue('legacy-import', 'importer', { duration_hours: 400 });

  for (let hour = 0; hour < HOURS; hour++) {
    const calls = busyAt(new Date(clock.now()).getUTCHours());
    for (let call = 0; call < calls; call++) {
      isFailing = hour % 11 === 3 && call % 4 === 1;
      const { token } = tokens[USERS[call % USERS.length]!]!;
      const model = MODELS[(hour + call) % MODELS.length]!;
      const chat = { method: 'POST', body: JSON.stringify({ model, size: 20 + ((hour * call) % 90) }) };
      const response =
        call % 3 === 0
          ? daemon.call(token, `/v1/models?page=${hour}-${call % 2}`)
          : daemon.call(token, '/v1/chat/completions', {
              ...chat,
              headers: { 'content-type': 'application/json' },
            });
      await (await response).text();
    }
    daemon.daemon.scheduler.publishAll();
    clock.advance(HOUR_MS);
  }

  const as = (reason: string) => ({
    'x-llmp-actor': 'cli',
    'x-audit-reason': encodeURIComponent(reason),
    'x-llmp-client-ip': '192.0.2.17',
  });
  await daemon.manage('DELETE', `/manage/tokens/${tokens['old-laptop']!.id}`, undefined, as('laptop was lost'));
  const legacy = `/manage/projects/${projects['legacy-import']!.id}`;
  await daemon.manage('PATCH', legacy, { is_active: false }, as('import is done'));
  const url = '/v1/models';
  await daemon.manage('POST', '/manage/cache/purge', { method: 'GET', url }, as('a new model is out'));
  return {
    daemon,
    projects,
    tokens,
    stop: async () => {
      await daemon.stop();
      await provider.stop();
    },
  };
}
