import type { Socket } from 'node:net';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { chunk, LAST_CHUNK, type RawClient } from '../../support/raw.js';
import { expectRefusal, PROJECT_INACTIVE, UNAUTHORIZED } from '../../support/refusals.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const SECOND_MS = 1000;
const REQUEST_TIMEOUT_MS = 60 * SECOND_MS;

describe('streaming', () => {
  const scene = ProxyFixture.forSuite({ REQUEST_TIMEOUT: '60s', CLIENT_BODY_TIMEOUT: '30s', MAX_REQUEST_SIZE: '1GB' });

  async function expectCut(client: RawClient): Promise<void> {
    await client.closed;
    expect(await client.response().catch(() => 'not whole')).to.equal('not whole');
  }

  describe('an event stream', () => {
    it('F10 may finish after its token has expired', async () => {
      scene.token = await scene.daemon.createToken(scene.project.id, { duration_minutes: 1 });
      const { client, upstream } = await scene.midStream();
      for (let i = 0; i < 2; i++) {
        scene.daemon.clock.advance(REQUEST_TIMEOUT_MS / 2);
        upstream.write(`data: ${i}\n\n`);
        await client.seen(`data: ${i}\n\n`);
      }
      expectRefusal(await scene.get(), UNAUTHORIZED);
      upstream.end();
      expect((await client.response()).text).to.match(/data: 1\n\n$/);
    });
  });

  describe('the timeout for response headers', () => {
    it('starts after the upload: a slow client does not use it up', async () => {
      let socket: Socket | undefined;
      scene.provider.server.once('request', (req) => {
        ({ socket } = req);
      });
      const client = await scene.midUpload();
      const more = 'x'.repeat(1024);
      for (let i = 0; i < 4; i++) {
        scene.daemon.clock.advance(29 * SECOND_MS);
        const before = socket!.bytesRead;
        client.send(chunk(more));
        await eventually('the chunk has arrived', () => socket!.bytesRead > before);
      }
      client.send(LAST_CHUNK);
      expect((await client.response()).text).to.equal(`first${more.repeat(4)}`);
    });
  });

  describe('a change', () => {
    const revoke = () => scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
    const reactivate = () => scene.daemon.manage('PATCH', `/manage/tokens/${scene.token.id}`, { is_active: true });
    const setProject = (isActive: boolean) =>
      scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { is_active: isActive });
    const CHANGES = {
      'revoking the token': { act: revoke, undo: reactivate, expected: UNAUTHORIZED },
      "revoking all the project's tokens": {
        act: () => scene.daemon.manage('POST', `/manage/projects/${scene.project.id}/tokens/revoke`),
        undo: reactivate,
        expected: UNAUTHORIZED,
      },
      'deactivating the project': {
        act: () => setProject(false),
        undo: () => setProject(true),
        expected: PROJECT_INACTIVE,
      },
    };
    afterEach(() => setProject(true));

    for (const [what, { act, undo, expected }] of Object.entries(CHANGES)) {
      it(`F06 ${what} ends a running stream within a second`, async () => {
        const { client } = await scene.midStream();
        const begun = performance.now();
        await act();
        await expectCut(client);
        expect(performance.now() - begun).to.be.below(SECOND_MS);
        await scene.aborted();
      });

      it(`${what} answers ${expected.status} to a request that waits for headers`, async () => {
        const client = await scene.beforeHeaders();
        await act();
        expectRefusal(await client.response(), expected);
        await scene.aborted();
      });

      it(`${what} answers ${expected.status} to a request whose body is still arriving`, async () => {
        const client = await scene.client(scene.post({ 'Content-Length': '10' }, 'begin'));
        await scene.inFlight(1);
        await act();
        expectRefusal(await client.response(), expected);
        await scene.expectSpent(0);
      });

      it(`F06 ${what} refuses the very next request; undoing it admits the next one`, async () => {
        expect((await scene.get()).status).to.equal(200);
        await act();
        expectRefusal(await scene.get(), expected);
        await undo();
        expect((await scene.get()).status).to.equal(200);
      });

      it(`${what} ends requests in flight even if it is undone immediately`, async () => {
        const { client } = await scene.midStream();
        await act();
        await undo();
        await expectCut(client);
      });
    }

    it('does not affect streams of other tokens and projects', async () => {
      const { client, upstream } = await scene.midStream();
      const sibling = await scene.daemon.createToken(scene.project.id);
      const stranger = await scene.daemon.createProject();
      await scene.daemon.manage('DELETE', `/manage/tokens/${sibling.id}`);
      await scene.daemon.manage('PATCH', `/manage/projects/${stranger.id}`, { is_active: false });
      upstream.end('data: last\n\n');
      expect((await client.response()).text).to.match(/last\n\n$/);
    });

    it('of a name does not affect streams', async () => {
      const { client, upstream } = await scene.midStream();
      await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { name: 'another name' });
      upstream.end('data: last\n\n');
      expect((await client.response()).text).to.match(/last\n\n$/);
    });
  });
});
