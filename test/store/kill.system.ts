import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { WireProject, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { ManagementClient } from '../../daemon/api/client.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { seededRandom } from '../support/model.js';
import { type ListeningDaemon, spawnDaemon } from '../support/process.js';
import { json, type Provider, startProvider } from '../support/provider.js';

const ROUNDS = 20;
const CAPS = [1, 5, 50, 400, 0];
const CLIENTS = 4;

/** The acknowledged state of a token: that it exists, and the last state set. */
interface Acknowledged {
  token: WireTokenCreated;
  isActive: boolean;
}

describe('kill -9 under load, then a restart on the same file', function () {
  this.timeout(180_000);
  const dir = temporaryFolder();
  const random = seededRandom(9);
  const used = new Map<string, number>();
  let provider: Provider;

  before(async () => {
    provider = await startProvider();
    // The path contains the token's ID, because the provider does not see the token.
    provider.answer = (_req, res, { url }) => {
      used.set(url, (used.get(url) ?? 0) + 1);
      json(res, 200, { ok: true });
    };
  });
  after(() => provider.stop());

  const start = () =>
    spawnDaemon({
      MANAGEMENT_TOKEN,
      UPSTREAM_BASE_URL: provider.url,
      DATABASE_URL: join(dir, 'llmp.db'),
      LOG_LEVEL: 'debug',
    });

  const clientOf = ({ url }: ListeningDaemon) =>
    new ManagementClient({ server: url, managementToken: MANAGEMENT_TOKEN, frontEnd: 'cli', timeoutMs: 5_000, fetch });

  /** Clients that send requests until the daemon is gone. */
  async function callUntilGone(daemon: ListeningDaemon, tokens: readonly Acknowledged[]): Promise<void> {
    for (let n = 0; ; n++) {
      const { token } = tokens[n % tokens.length]!;
      try {
        const response = await fetch(`${daemon.url}/v1/of/${token.id}`, {
          headers: { authorization: `Bearer ${token.token}` },
        });
        await response.arrayBuffer();
      } catch {
        return;
      }
    }
  }

  /** An operator who issues, revokes and reactivates tokens, and records what was acknowledged. */
  async function changeUntilGone(client: ManagementClient, project: WireProject, known: Acknowledged[]) {
    const own: Acknowledged[] = [];
    try {
      for (;;) {
        const issued = { token: await client.createToken({ project_id: project.id }), isActive: true };
        own.push(issued);
        known.push(issued);
        const changed = own[Math.floor(random() * own.length)]!;
        const target = !changed.isActive;
        // Until the response arrives, either state is right: do not check it.
        known.splice(known.indexOf(changed), 1);
        await client.updateToken(changed.token.id, { is_active: target });
        changed.isActive = target;
        known.push(changed);
      }
    } catch {
      return;
    }
  }

  async function findAgain(client: ManagementClient, { token, isActive }: Acknowledged): Promise<WireToken> {
    const found = await client.token(token.id);
    expect(found.is_active, 'an acknowledged change').to.equal(isActive);
    return found;
  }

  it(`J19 M04 exceeds no cap and loses no acknowledged change in ${ROUNDS} rounds, and leaves no secret in the files`, async () => {
    let daemon = await start();
    let client = clientOf(daemon);
    const project = await client.createProject({ name: 'killed', api_key: UPSTREAM_KEY });
    const capped: Acknowledged[] = [];
    for (const cap of CAPS) {
      const token = await client.createToken({ project_id: project.id, max_requests: cap });
      capped.push({ token, isActive: true });
    }
    const changed: Acknowledged[] = [];
    const printed: string[] = [];

    for (let round = 0; round < ROUNDS; round++) {
      const ends = [
        ...Array.from({ length: CLIENTS }, () => callUntilGone(daemon, capped)),
        changeUntilGone(client, project, changed),
      ];
      const before = changed.length;
      await eventually('a token is issued in this round', () => changed.length > before, 20_000);
      await sleep(random() * 250);
      await daemon.kill();
      await Promise.all(ends);
      printed.push(daemon.printed.stdout, daemon.printed.stderr);

      daemon = await start();
      client = clientOf(daemon);
      for (const acknowledged of capped) {
        const { request_count: counted, max_requests: cap } = await findAgain(client, acknowledged);
        const reached = used.get(`/v1/of/${acknowledged.token.id}`) ?? 0;
        if (cap === 0) continue;
        expect(reached, `uses of a cap of ${cap} in round ${round}`).to.be.at.most(cap);
        expect(counted, `counted of a cap of ${cap} in round ${round}`).to.be.within(reached, cap);
      }
      for (const acknowledged of changed) await findAgain(client, acknowledged);
    }

    const secrets = [UPSTREAM_KEY, MANAGEMENT_TOKEN, ...[...capped, ...changed].map(({ token }) => token.token)];
    printed.push(daemon.printed.stdout, daemon.printed.stderr);
    // Killed once more, so that the write-ahead log still exists and can be checked.
    await daemon.kill();
    for (const file of readdirSync(dir)) expectNone(secrets, readFileSync(join(dir, file), 'latin1'), file);
    expectNone(secrets, printed.join('\n'), 'what the daemon printed');

    const database = new SqliteDatabase(join(dir, 'llmp.db'));
    expect(await database.select('PRAGMA integrity_check')).to.deep.equal([{ integrity_check: 'ok' }]);
    await database.close();
  });

  function expectNone(secrets: readonly string[], text: string, where: string): void {
    expect(secrets.filter((secret) => text.includes(secret)).length, `secrets in ${where}`).to.equal(0);
  }
});
