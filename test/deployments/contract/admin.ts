/** The Admin UI: all of its pages, its forms, and sessions that are valid on every instance. */
import { expect } from 'chai';
import type { TestBrowser } from '../../admin/test-browser.js';
import { MANAGEMENT_TOKEN } from '../../support/daemon.js';
import type { ContractContext } from './context.js';

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

export function behavesInTheAdminUi(given: ContractContext): void {
  describe('the Admin UI', () => {
    let visitor: TestBrowser;
    before(async () => {
      visitor = given.system.visitor();
      await visitor.logIn(MANAGEMENT_TOKEN);
    });

    /** Follows "Next page" to the end, each page on the next instance. @returns the IDs in the list. */
    async function walked(section: 'tokens' | 'projects' | 'audit', query: string) {
      const ids: string[] = [];
      let pages = 0;
      for (let to: string | undefined = `${section}${query}`; to !== undefined; pages++) {
        const seen = await given.system.visitor(visitor).get(to);
        expect(seen.status, `${to}: ${seen.html}`).to.equal(200);
        const table = /<table[\s\S]*?<\/table>/.exec(seen.html)?.[0] ?? '';
        for (const row of table.split('<tr').slice(2)) {
          const id = new RegExp(`href="[^"]*/${section}/(${UUID})"`).exec(row)?.[1];
          if (id !== undefined) ids.push(id);
        }
        const next: string | undefined = /<a [^>]*rel="next"[^>]*>/.exec(seen.html)?.[0];
        to = next && /href="([^"]+)"/.exec(next)?.[1]?.replaceAll('&amp;', '&');
      }
      return { ids, pages };
    }
    const idsOf = async (path: string) => (await given.system.walk<{ id: string }>(path)).items.map(({ id }) => id);

    it('shows every token, project and audit record, page by page', async () => {
      for (const [section, query, path] of [
        ['tokens', '', '/manage/tokens'],
        ['tokens', '?sort=-request_count', '/manage/tokens?sort=-request_count'],
        ['tokens', '?sort=name&state=active', '/manage/tokens?sort=name&state=active'],
        ['projects', '', '/manage/projects'],
        ['audit', '?action=token.create', '/manage/audit?action=token.create'],
        ['audit', '?action=token.use', '/manage/audit?action=token.use'],
      ] as const) {
        const { ids, pages } = await walked(section, query);
        expect(pages, `${section}${query}`).to.be.greaterThan(1);
        expect(ids, `${section}${query}`).to.deep.equal(await idsOf(path));
      }
    });

    it('shows the overview, a token, a project, a record and the cache', async () => {
      const { tokens, projects } = given.testData;
      const [record] = await idsOf('/manage/audit?limit=1000&action=token.revoke');
      for (const to of ['', `tokens/${tokens[0]?.id}`, `projects/${projects[0]?.id}`, `audit/${record}`, 'cache']) {
        const seen = await given.system.visitor(visitor).get(to);
        expect(seen.status, to).to.equal(200);
      }
    });

    it('makes the changes of its forms, on any instance', async () => {
      const [project] = given.testData.projects;
      const fields = { project_id: project?.id ?? '', duration: '2', unit: 'hours', name: 'made in the Admin UI' };
      const browser = given.system.visitor(visitor);
      const issued = await browser.post('tokens/new', fields);
      expect(issued.to, issued.html).to.be.a('string');
      const shown = await given.system.visitor(browser).get(issued.to ?? '');
      const secret = /sk-wt-[0-9A-Za-z]{49}/.exec(shown.html)?.[0] ?? '';
      expect((await given.system.call(secret)).status).to.equal(200);
      const [id] = await idsOf('/manage/tokens?q=made in the Admin UI');
      const revoked = await given.system.visitor(visitor).post(`tokens/${id}/revoke`, { reason: 'tried' });
      expect(revoked.status).to.equal(303);
      expect((await given.system.call(secret)).status).to.equal(401);
    });

    it('ends a session on all instances at once', async () => {
      const other = given.system.visitor();
      await other.logIn(MANAGEMENT_TOKEN);
      for (let at = 0; at < given.system.count; at++) {
        expect((await given.system.visitor(other).get()).status).to.equal(200);
      }
      const copies = Array.from({ length: given.system.count }, () => given.system.visitor(other));
      expect((await other.post('logout')).status).to.equal(303);
      for (const copy of copies) expect((await copy.get()).status).to.equal(303);
      expect((await given.system.visitor(visitor).get()).status, "another operator's session").to.equal(200);
    });
  });
}
