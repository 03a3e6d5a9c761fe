/** Changes of many tokens at once, and how soon every instance applies them. */
import { expect } from 'chai';
import type { WireProject, WireToken, WireTokenCreated } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { each } from '../system.js';
import type { ContractContext } from './context.js';

const MANY = 120;
/** How long another instance may take to learn of a change. */
const SOON_MS = 2_000;
let projects = 0;

export function behavesInChanges(given: ContractContext): void {
  describe('changes', () => {
    let project: WireProject;
    beforeEach(async () => {
      const body = { name: `changed ${given.system.deployment.name} ${++projects}`, api_key: UPSTREAM_KEY };
      project = await given.system.ask('POST', '/manage/projects', { body });
    });

    const issued = (fields = {}) =>
      given.system.ask<WireTokenCreated>('POST', '/manage/tokens', { body: { project_id: project.id, ...fields } });
    async function many(): Promise<WireTokenCreated[]> {
      const tokens: WireTokenCreated[] = [];
      await each(Array.from({ length: MANY }), async (_, n) => (tokens[n] = await issued()));
      return tokens;
    }
    const shown = async () =>
      (await given.system.walk<WireToken>(`/manage/tokens?limit=50&project_id=${project.id}`)).items;
    const statesOf = async () => (await shown()).map(({ state }) => state);
    const recordsOf = async (action: string) =>
      (
        await given.system.walk<{ count: number | null }>(
          `/manage/audit?limit=50&action=${action}&project_id=${project.id}`,
        )
      ).items;
    const statusAt = async (at: number, { token }: WireTokenCreated) => {
      const response = await given.system.call(token, '/v1/models', { at });
      await response.text();
      return response.status;
    };
    /** With nginx in front, the test cannot choose the instance of a request. */
    const everywhere = async (token: WireTokenCreated, status: number) => {
      for (let at = 0; at < 4; at++) {
        await eventually(`${status} of instance ${at}`, async () => (await statusAt(at, token)) === status, SOON_MS);
      }
    };

    it('of the name of a project are shown by every instance at once, in tokens, usage and audit', async () => {
      const token = await issued({ name: 'renamed job' });
      await (await given.system.call(token.token, '/v1/models')).text();
      // An instance writes its last counts when it is asked itself.
      for (let at = 0; at < given.system.count; at++) await given.system.ask('GET', '/manage/usage', { at });
      const name = `${project.name}, renamed`;
      await given.system.ask('PATCH', `/manage/projects/${project.id}`, { body: { name }, at: 0 });
      for (let at = 0; at < given.system.count; at++) {
        const ask = <T>(path: string) => given.system.ask<T>('GET', path, { at });
        expect((await ask<WireToken>(`/manage/tokens/${token.id}`)).project_name).to.equal(name);
        for (const path of ['audit?', 'usage?by=token,project&']) {
          const lines = await ask<{ token_name: string | null; project_name: string }[]>(
            `/manage/${path}project_id=${project.id}`,
          );
          expect(lines, path).not.to.have.lengthOf(0);
          expect(lines.map(({ project_name }) => project_name)).to.deep.equal(lines.map(() => name));
          expect(lines.map(({ token_name }) => token_name)).to.include('renamed job');
        }
      }
    });

    it('of many tokens by the command line are made and recorded one by one', async () => {
      const tokens = await many();
      const ids = tokens.map(({ id }) => id).join('\n');
      const revoked = await given.system.llmp(['token', 'revoke', '-', '--yes'], ids);
      expect(revoked.exitCode, revoked.err).to.equal(0);
      expect(await statesOf()).to.deep.equal(Array(MANY).fill('revoked'));
      expect(await recordsOf('token.revoke')).to.have.lengthOf(MANY);
      await everywhere(tokens[7]!, 401);
      const restored = await given.system.llmp(['token', 'reactivate', '-', '--yes'], ids);
      expect(restored.exitCode, restored.err).to.equal(0);
      expect(await statesOf()).to.deep.equal(Array(MANY).fill('active'));
      await everywhere(tokens[7]!, 200);
    });

    it('of one command are undone by its batch, except what was changed since, on every instance', async () => {
      const tokens = await many();
      const ids = tokens.map(({ id }) => id).join('\n');
      const { err } = await given.system.llmp(['token', 'revoke', '-', '--yes'], ids);
      const [, batch = ''] = /Undo: .* undo (\S+)\n/.exec(err) ?? [];
      const touched = tokens.slice(0, 2);
      for (const { id } of touched) {
        await given.system.ask('PATCH', `/manage/tokens/${id}`, { body: { is_active: false } });
      }
      const undone = await given.system.llmp(['undo', batch, '--yes'], '');
      expect(undone.exitCode, undone.err).to.equal(1);
      expect(undone.err).to.contain(`Undid ${MANY - 2} of ${MANY} changes. 2 were changed again since`);
      await everywhere(touched[0]!, 401);
      await everywhere(tokens[7]!, 200);
      expect((await statesOf()).filter((state) => state === 'revoked')).to.have.lengthOf(2);
      const grouped = `/manage/audit?group=batch&limit=50&project_id=${project.id}&action=token.reactivate`;
      const { items } = await given.system.walk<{ count: number; undo_of: string }>(grouped);
      expect(items.map(({ count, undo_of }) => [count, undo_of])).to.deep.equal([[MANY - 2, batch]]);
    });

    it('of all tokens of a project are one change, which every instance applies', async () => {
      const tokens = await many();
      await everywhere(tokens[3]!, 200);
      const path = `/manage/projects/${project.id}/tokens/revoke`;
      const headers = { 'x-llmp-user': 'ana@laptop', 'x-audit-reason': 'leaked' };
      expect(await given.system.ask('POST', path, { headers })).to.deep.include({ revoked_count: MANY });
      expect(await statesOf()).to.deep.equal(Array(MANY).fill('revoked'));
      expect((await recordsOf('token.revoke_all')).map(({ count }) => count)).to.deep.equal([MANY]);
      for (const { revoked_by, revoke_reason } of await shown()) {
        expect([revoked_by, revoke_reason]).to.deep.equal(['ana@laptop', 'leaked']);
      }
      await everywhere(tokens[3]!, 401);
      await everywhere(tokens[90]!, 401);
      expect(await given.system.ask('POST', path)).to.deep.include({ revoked_count: 0 });
    });

    it('that deactivate and reactivate a project apply everywhere', async () => {
      const token = await issued();
      for (const [isActive, status, state] of [
        [false, 403, 'project_inactive'],
        [true, 200, 'active'],
      ] as const) {
        await given.system.ask('PATCH', `/manage/projects/${project.id}`, { body: { is_active: isActive } });
        await everywhere(token, status);
        expect(await statesOf()).to.deep.equal([state]);
      }
    });

    it('that revoke a token apply to the next request on the instance that made them', async () => {
      const token = await issued();
      const { count, deployment } = given.system;
      if (deployment.isBehindNginx) return everywhere(token, 200);
      for (let at = 0; at < count; at++) {
        for (const isActive of [false, true]) {
          await given.system.ask('PATCH', `/manage/tokens/${token.id}`, { body: { is_active: isActive }, at });
          expect(await statusAt(at, token)).to.equal(isActive ? 200 : 401);
          await everywhere(token, isActive ? 200 : 401);
        }
      }
    });

    it('that revoke a token on one instance end its requests in flight on any instance', async () => {
      const { provider } = given.system;
      const before = provider.answer;
      provider.answer = (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\n\n');
      };
      try {
        const token = await issued();
        const responses = await Promise.all(
          [0, 1].map((at) => given.system.call(token.token, '/v1/stream', { method: 'POST', body: '', at })),
        );
        expect(responses.map(({ status }) => status)).to.deep.equal([200, 200]);
        const reads = responses.map((response) =>
          response.text().then(
            () => 'whole',
            () => 'cut',
          ),
        );
        await given.system.ask('DELETE', `/manage/tokens/${token.id}`, { at: 0 });
        expect(await Promise.all(reads)).to.deep.equal(['cut', 'cut']);
      } finally {
        provider.answer = before;
      }
    });

    it('of an upstream key apply everywhere', async () => {
      const token = await issued();
      const upstreamKey = canary('upstream');
      await given.system.ask('PATCH', `/manage/projects/${project.id}`, { body: { api_key: upstreamKey } });
      for (let at = 0; at < 4; at++) {
        await eventually('the provider receives the new key', async () => {
          given.system.provider.received.length = 0;
          await given.system.completion(token.token, 'm', at);
          return given.system.provider.received[0]?.headers.authorization === `Bearer ${upstreamKey}`;
        });
      }
    });

    it('of one state that several instances make at the same time with If-Match: one is made', async () => {
      const token = await issued();
      for (const path of [`/manage/projects/${project.id}`, `/manage/tokens/${token.id}`]) {
        const etag = (await given.system.manage('GET', path)).headers.get('etag') ?? '';
        const answers = await Promise.all(
          Array.from({ length: 6 }, (_, at) => {
            const body = path.includes('tokens') ? { is_active: false } : { name: `${project.name} ${at}` };
            return given.system.manage('PATCH', path, { body, headers: { 'if-match': etag }, at });
          }),
        );
        expect(answers.map(({ status }) => status).sort(), path).to.deep.equal([200, 412, 412, 412, 412, 412]);
      }
    });

    it('of a name to one that differs in blanks and composition only conflict on every database', async () => {
      const name = `${project.name} café`;
      await given.system.ask('PATCH', `/manage/projects/${project.id}`, { body: { name } });
      for (const [at, other] of [`${name} `, ` ${name}`, name.normalize('NFD'), `${name}\u200b`].entries()) {
        const body = { name: other, api_key: canary('upstream') };
        const { status } = await given.system.manage('POST', '/manage/projects', { body, at });
        expect(status, JSON.stringify(other)).to.equal(409);
      }
      const { status } = await given.system.manage('POST', '/manage/projects', {
        body: { name: name.toUpperCase(), api_key: canary('upstream') },
      });
      expect(status, 'another letter case is another name').to.equal(201);
    });

    it('are visible in conditional requests to any instance', async () => {
      const token = await issued();
      for (const path of [
        `/manage/tokens/${token.id}`,
        `/manage/tokens?limit=50&project_id=${project.id}`,
        `/manage/projects/${project.id}`,
        '/manage/projects?limit=5',
        `/manage/audit?limit=5&project_id=${project.id}`,
      ]) {
        let etag = '';
        // The list of projects has their recent requests: those of earlier tests may be counted a little later.
        await eventually(`${path} is unchanged on every instance`, async () => {
          etag = (await given.system.manage('GET', path)).headers.get('etag') ?? '';
          expect(etag).to.match(/^"[\w-]+"$/);
          const headers = { 'if-none-match': etag };
          const every = Array.from({ length: given.system.count }, (_, at) => at);
          const again = await Promise.all(every.map((at) => given.system.manage('GET', path, { headers, at })));
          return again.every(({ status }) => status === 304);
        });
        const of = path.startsWith('/manage/tokens') ? `/manage/tokens/${token.id}` : `/manage/projects/${project.id}`;
        const body = path.startsWith('/manage/tokens')
          ? { is_active: false }
          : { name: `${project.name} ${path.length}` };
        await given.system.ask('PATCH', of, { body });
        const changed = await given.system.manage('GET', path, { headers: { 'if-none-match': etag } });
        expect(changed.status, path).to.equal(200);
        if (path.startsWith('/manage/tokens')) await given.system.ask('PATCH', of, { body: { is_active: true } });
      }
    });
  });
}
