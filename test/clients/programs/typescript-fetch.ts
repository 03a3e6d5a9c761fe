import {
  AuditApi,
  CacheApi,
  Configuration,
  ListAuditActionEnum,
  ListTokensSortEnum,
  ProblemFromJSON,
  ProjectsApi,
  ResponseError,
  TokensApi,
  UsageApi,
} from './generated';
import { check, HOUR, label, managementToken, nextCursor, url, withOffset } from './common';

const configuration = new Configuration({ basePath: url, accessToken: managementToken });
const projects = new ProjectsApi(configuration);
const tokens = new TokensApi(configuration);
const now = Date.now();

async function refusal(asked: Promise<unknown>): Promise<[number, string]> {
  try {
    await asked;
  } catch (error) {
    check(error instanceof ResponseError, 'another error');
    return [error.response.status, ProblemFromJSON(await error.response.json()).code];
  }
  throw new Error('not refused');
}

const project = await projects.createProject({
  projectCreate: { name: label, apiKey: 'sk-example-key-of-a-provider' },
  xAuditReason: 'a%20test',
});

const ids: string[] = [];
for (const name of ['one', 'two', 'three']) {
  const created = await tokens.createToken({
    tokenCreate: { projectId: project.id.toUpperCase(), durationHours: 2, maxRequests: 10, name },
  });
  check(created.token.startsWith('sk-wt-') && created.expiresAt instanceof Date, 'no secret');
  ids.push(created.id);
}

const listed: string[] = [];
let cursor: string | undefined;
let pages = 0;
do {
  const page = await tokens.listTokensRaw({
    limit: 2,
    ...(cursor !== undefined && { cursor }),
    projectId: project.id,
    activeOnly: true,
    sort: ListTokensSortEnum.CreatedAt,
    expiresAfter: withOffset(now + HOUR),
    expiresBefore: '3h',
  });
  listed.push(...(await page.value()).map(({ id }) => id));
  cursor = nextCursor(page.raw.headers.get('link'));
  pages += 1;
} while (cursor !== undefined);
check(pages === 2 && listed.length === 3 && ids.every((id) => listed.includes(id)), `wrong list: ${listed.join()}`);
const none = await tokens.listTokens({ projectId: project.id, expiresBefore: withOffset(now + HOUR) });
check(none.length === 0, 'a filter by a time with an offset');

const id = ids[0] ?? '';
const shown = await tokens.readToken({ id });
check(shown.name === 'one' && shown.state === 'active' && shown.lastUsedAt === null, 'not shown');
await tokens.revokeToken({ id });
check((await tokens.readToken({ id })).state === 'revoked', 'not revoked');
check((await tokens.updateToken({ id, tokenPatch: { isActive: true } })).isActive, 'not reactivated');

const period = { since: withOffset(now - HOUR), until: withOffset(now + HOUR) };
check(Array.isArray(await new UsageApi(configuration).readUsage({ by: 'project', ...period })), 'no usage');
const audit = await new AuditApi(configuration).listAudit({
  action: ListAuditActionEnum.TokenRevoke,
  tokenId: id,
  ...period,
});
check(audit.length === 1 && audit[0]?.tokenId === id, 'no audit record');
const purged = await new CacheApi(configuration).purgeCache({ cachePurge: { projectId: project.id } });
check(purged.purgedCount === 0, 'not purged');

const missing = await refusal(tokens.readToken({ id: '00000000-0000-4000-8000-000000000000' }));
check(missing.join() === '404,not_found', `no 404: ${missing.join()}`);
const taken = await refusal(projects.createProject({ projectCreate: { name: label, apiKey: 'another' } }));
check(taken.join() === '409,name_taken', `no 409: ${taken.join()}`);
console.log('the main job is done');
