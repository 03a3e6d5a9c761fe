import createClient from 'openapi-fetch';
import type { paths } from './generated';
import { check, HOUR, label, managementToken, nextCursor, url, withOffset } from './common';

const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${managementToken}` } });
const now = Date.now();

const created = await client.POST('/manage/projects', {
  body: { name: label, api_key: 'sk-example-key-of-a-provider' },
  params: { header: { 'X-Llmp-Actor': 'cli', 'X-Audit-Reason': 'a%20test' } },
});
const project = created.data;
check(project !== undefined, 'no project');

const ids: string[] = [];
for (const name of ['one', 'two', 'three']) {
  const { data } = await client.POST('/manage/tokens', {
    body: { project_id: project.id.toUpperCase(), duration_hours: 2, max_requests: 10, name },
  });
  check(data !== undefined && data.token.startsWith('sk-wt-'), 'no secret');
  ids.push(data.id);
}

const listed: string[] = [];
let cursor: string | undefined;
let pages = 0;
do {
  const { data, response } = await client.GET('/manage/tokens', {
    params: {
      query: {
        limit: 2,
        cursor,
        project_id: project.id,
        active_only: true,
        sort: 'created_at',
        expires_after: withOffset(now + HOUR),
        expires_before: '3h',
      },
    },
  });
  check(data !== undefined, 'no page');
  listed.push(...data.map(({ id }) => id));
  cursor = nextCursor(response.headers.get('link'));
  pages += 1;
} while (cursor !== undefined);
check(pages === 2 && listed.length === 3 && ids.every((id) => listed.includes(id)), `wrong list: ${listed.join()}`);
const none = await client.GET('/manage/tokens', {
  params: { query: { project_id: project.id, expires_before: withOffset(now + HOUR) } },
});
check(none.data?.length === 0, 'a filter by a time with an offset');

const id = ids[0] ?? '';
const path = { id };
const shown = await client.GET('/manage/tokens/{id}', { params: { path } });
check(shown.data?.name === 'one' && shown.data.state === 'active', 'not shown');
check((await client.DELETE('/manage/tokens/{id}', { params: { path } })).data?.message !== undefined, 'not revoked');
check((await client.GET('/manage/tokens/{id}', { params: { path } })).data?.state === 'revoked', 'not revoked');
const again = await client.PATCH('/manage/tokens/{id}', { params: { path }, body: { is_active: true } });
check(again.data?.is_active === true, 'not reactivated');

const usage = await client.GET('/manage/usage', {
  params: { query: { by: 'project', since: withOffset(now - HOUR), until: withOffset(now + HOUR) } },
});
check(Array.isArray(usage.data), 'no usage');
const audit = await client.GET('/manage/audit', {
  params: {
    query: { action: 'token.revoke', token_id: id, since: withOffset(now - HOUR), until: withOffset(now + HOUR) },
  },
});
check(audit.data?.length === 1 && audit.data[0]?.token_id === id, 'no audit record');
const purged = await client.POST('/manage/cache/purge', { body: { project_id: project.id } });
check(purged.data?.purged_count === 0, 'not purged');

const missing = await client.GET('/manage/tokens/{id}', {
  params: { path: { id: '00000000-0000-4000-8000-000000000000' } },
});
check(missing.response.status === 404 && missing.error?.code === 'not_found', 'no 404');
const taken = await client.POST('/manage/projects', { body: { name: label, api_key: 'another' } });
check(taken.response.status === 409 && taken.error?.code === 'name_taken', 'no 409');
console.log('the main job is done');
