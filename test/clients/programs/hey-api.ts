import {
  createProject,
  createToken,
  listAudit,
  listTokens,
  purgeCache,
  readToken,
  readUsage,
  revokeToken,
  updateToken,
} from './generated';
import { client } from './generated/client.gen';
import { check, HOUR, label, managementToken, nextCursor, url, withOffset } from './common';

client.setConfig({ baseUrl: url, auth: managementToken });
const now = Date.now();

const { data: project } = await createProject({
  body: { name: label, api_key: 'sk-example-key-of-a-provider' },
  headers: { 'X-Llmp-Actor': 'cli', 'X-Audit-Reason': 'a%20test' },
});
check(project !== undefined, 'no project');

const ids: string[] = [];
for (const name of ['one', 'two', 'three']) {
  const { data } = await createToken({
    body: { project_id: project.id.toUpperCase(), duration_hours: 2, max_requests: 10, name },
  });
  check(data !== undefined && data.token.startsWith('sk-wt-'), 'no secret');
  ids.push(data.id);
}

const listed: string[] = [];
let cursor: string | undefined;
let pages = 0;
do {
  const { data, response } = await listTokens({
    query: {
      limit: 2,
      ...(cursor !== undefined && { cursor }),
      project_id: project.id,
      active_only: true,
      sort: 'created_at',
      expires_after: withOffset(now + HOUR),
      expires_before: '3h',
    },
  });
  check(data !== undefined && response !== undefined, 'no page');
  listed.push(...data.map(({ id }) => id));
  cursor = nextCursor(response.headers.get('link'));
  pages += 1;
} while (cursor !== undefined);
check(pages === 2 && listed.length === 3 && ids.every((id) => listed.includes(id)), `wrong list: ${listed.join()}`);
const none = await listTokens({ query: { project_id: project.id, expires_before: withOffset(now + HOUR) } });
check(none.data?.length === 0, 'a filter by a time with an offset');

const id = ids[0] ?? '';
const path = { id };
const shown = await readToken({ path });
check(shown.data?.name === 'one' && shown.data.state === 'active', 'not shown');
check((await revokeToken({ path })).data?.message !== undefined, 'not revoked');
check((await readToken({ path })).data?.state === 'revoked', 'not revoked');
check((await updateToken({ path, body: { is_active: true } })).data?.is_active === true, 'not reactivated');

const period = { since: withOffset(now - HOUR), until: withOffset(now + HOUR) };
check(Array.isArray((await readUsage({ query: { by: 'project', ...period } })).data), 'no usage');
const audit = await listAudit({ query: { action: 'token.revoke', token_id: id, ...period } });
check(audit.data?.length === 1 && audit.data[0]?.token_id === id, 'no audit record');
check((await purgeCache({ body: { project_id: project.id } })).data?.purged_count === 0, 'not purged');

const missing = await readToken({ path: { id: '00000000-0000-4000-8000-000000000000' } });
check(missing.response?.status === 404 && missing.error?.code === 'not_found', 'no 404');
const taken = await createProject({ body: { name: label, api_key: 'another' } });
check(taken.response?.status === 409 && taken.error?.code === 'name_taken', 'no 409');
console.log('the main job is done');
