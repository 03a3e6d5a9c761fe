/** The audit log: all of it over its pages, searches, followers, and its files. */
import { expect } from 'chai';
import type { WireAuditRecord } from '../../../daemon/api/contract.js';
import { eventually } from '../../support/eventually.js';
import { Follower } from '../../support/follower.js';
import type { ContractContext } from './context.js';

export function behavesInAudit(given: ContractContext): void {
  describe('the audit log', () => {
    const walk = (query: string) => given.system.walk<WireAuditRecord>(`/manage/audit?${query}`);
    const countOf = async (condition: string) => {
      const [row] = await given.system.select<{ n: number | string }>(
        `SELECT COUNT(*) AS n FROM audit WHERE ${condition}`,
      );
      return Number(row?.n);
    };

    it('has each change and each use once, newest first, over all pages', async () => {
      const { items, pages } = await walk('limit=90');
      expect(pages).to.be.greaterThan(3);
      expect(new Set(items.map(({ id }) => id)).size).to.equal(items.length);
      const times = items.map(({ time }) => Date.parse(time));
      expect(times).to.deep.equal([...times].sort((a, b) => b - a));
      const changes = items.filter(({ action }) => action !== 'token.use');
      const rows = await given.system.select<{ id: string }>(
        'SELECT id FROM audit ORDER BY recorded_at DESC, seq DESC',
      );
      expect(changes.map(({ id }) => id)).to.deep.equal(rows.map(({ id }) => id));
      const uses = items.filter(({ action }) => action === 'token.use');
      const [hourly] = await given.system.select<{ n: number | string; requests: number | string }>(
        'SELECT COUNT(*) AS n, SUM(requests) AS requests FROM usage_hourly',
      );
      expect(uses).to.have.lengthOf(Number(hourly?.n));
      expect(uses.reduce((sum, { count }) => sum + (count ?? 0), 0)).to.equal(Number(hourly?.requests));
    });

    it('has the names of the tokens and projects in the tables', async () => {
      const names = async (table: string) => {
        const rows = await given.system.select<{ id: string; name: string }>(`SELECT id, name FROM ${table}`);
        return new Map(rows.map(({ id, name }) => [id, name || null]));
      };
      const [tokens, projects] = [await names('tokens'), await names('projects')];
      const { items } = await walk('limit=500');
      expect(items.filter(({ token_name }) => token_name !== null)).not.to.have.lengthOf(0);
      for (const { token_id, token_name, project_id, project_name } of items) {
        expect(token_name).to.equal(tokens.get(token_id ?? '') ?? null);
        expect(project_name).to.equal(projects.get(project_id ?? '') ?? null);
      }
    });

    it('can be filtered, over all pages', async () => {
      const { tokens, projects, idle } = given.testData;
      const [token] = tokens;
      for (const [query, condition] of [
        ['action=token.create', `action = 'token.create'`],
        ['action=token.revoke', `action = 'token.revoke'`],
        ['action=project.create', `action = 'project.create'`],
        ['actor=management', `actor = 'management'`],
        ['actor=management&outcome=success', `actor = 'management' AND outcome = 'success'`],
        [
          `action=token.create&project_id=${projects[0]?.id}`,
          `action = 'token.create' AND project_id = '${projects[0]?.id}'`,
        ],
        [`actor=management&token_id=${token?.id}`, `actor = 'management' AND token_id = '${token?.id}'`],
        [`actor=management&project_id=${idle.id}`, `actor = 'management' AND project_id = '${idle.id}'`],
      ] as const) {
        const { items } = await walk(`limit=40&${query}`);
        expect(items.length, query).to.be.greaterThan(0);
        expect(items, query).to.have.lengthOf(await countOf(condition));
        expect(new Set(items.map(({ id }) => id)).size, query).to.equal(items.length);
      }
      expect((await walk('limit=100&action=token.use')).pages).to.be.greaterThan(2);
    });

    it('can be searched by words, over all pages', async () => {
      const revoked = await countOf(`action = 'token.revoke'`);
      const { items, pages } = await walk('limit=10&q=needed mor');
      expect(pages).to.be.greaterThan(1);
      expect(items).to.have.lengthOf(revoked);
      expect(items.every(({ reason }) => reason === 'not needed any more')).to.equal(true);
      expect((await walk('q=nothing-like-it')).items).to.deep.equal([]);
    });

    it('is found by the names of tokens, whatever the change was', async () => {
      const { items: revoked } = await walk('limit=1&action=token.revoke');
      const [{ token_id: id, token_name: name } = {}] = revoked;
      const { items } = await walk(`q=${encodeURIComponent(name ?? '')}&action=token.revoke`);
      expect(items.map((it) => it.token_id)).to.include(id);
    });

    it('can be limited to a period', async () => {
      const middle = new Date(given.testData.beganMs - 8 * 86_400_000).toISOString();
      const [before, after, all] = await Promise.all(
        [`until=${middle}`, `since=${middle}`, ''].map((query) => walk(`limit=100&action=token.use&${query}`)),
      );
      expect(before?.items.length).to.be.greaterThan(0);
      expect((before?.items.length ?? 0) + (after?.items.length ?? 0)).to.equal(all?.items.length);
      expect(after?.items.every(({ time }) => time >= middle)).to.equal(true);
    });

    it('shows each record by its ID', async () => {
      const { items } = await walk('limit=500');
      for (const item of items.filter((_, n) => n % 90 === 0)) {
        expect(await given.system.ask('GET', `/manage/audit/${item.id}`)).to.deep.equal(item);
      }
    });

    it('can be followed from any record on, over more than a page, without a gap', async () => {
      const [last] = await given.system.select<{ seq: number | string }>('SELECT MAX(seq) AS seq FROM audit');
      const seq = Number(last?.seq);
      for (let at = 0; at < given.system.count; at++) {
        const follower = new Follower<WireAuditRecord>(
          given.system.instance(at).url,
          (client, options) => client.auditStream({}, options),
          '5',
        );
        await eventually('it has received everything', () => follower.items.length >= seq - 5);
        expect(follower.positions.map(Number)).to.deep.equal(Array.from({ length: seq - 5 }, (_, n) => n + 6));
        await follower.leave();
      }
    });

    it('is in a file of each instance, which can be verified', async () => {
      const changes = await countOf('1 = 1');
      for (let at = 0; at < given.system.count; at++) {
        await eventually('the file is complete', () => given.system.auditLines(at).length >= changes);
        const { exitCode, out, err } = await given.system.verify(at);
        expect(exitCode, out + err).to.equal(0);
      }
    });
  });
}
