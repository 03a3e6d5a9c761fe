/** A daemon with more than a day of traffic, for tests and screenshots. */
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
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

const USERS = ['frontend', 'ci-deploy', 'batch-night', 'frontend', 'notebook'] as const;

export async function startAdminFixture(): Promise<AdminFixture> {
  let isFailing = false;
  const provider = await startProvider();
  provider.answer = (_req, res) => {
    json(res, isFailing ? 503 : 200, { object: 'list', data: [] }, { 'cache-control': 'max-age=600' });
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
      isFailing = hour % 11 === 3 && call % 3 === 0;
      const { token } = tokens[USERS[call % USERS.length]!]!;
      await (await daemon.call(token, `/v1/models?page=${hour}-${call % 7}`)).text();
    }
    daemon.daemon.completions.flush();
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
