/** A million tokens in PostgreSQL: pages of the list with their totals, and the first use of a token. */
import type { WireProject } from '../../../daemon/api/contract.js';
import { digestOf, mintSecret } from '../../../daemon/core/token.js';
import { canaryEncryptionKey } from '../../support/canaries.js';
import { DatabaseServer, WITHOUT } from '../../support/database-servers.js';
import { startDaemon, type TestDaemon } from '../../support/daemon.js';
import { ADD_PURSES } from '../../support/many-tokens.js';
import { startProvider } from '../../support/provider.js';
import type { Figure } from '../figures.js';
import { Failure } from '../processes.js';
import type { Report } from '../run.js';
import { firstUseFigure, pageFigures } from './scale.js';

const TOKENS = 1_000_000;
const PROJECTS = 100;
const RUNS = 49;
const DAY_MS = 86_400_000;
const COLUMNS =
  'id, digest, project_id, name, name_folded, last_used_at, is_active, expires_at, created_at, max_requests, request_count, reserved, obfuscated';

/** @throws {Failure} without PostgreSQL. */
export async function scalePostgres(): Promise<Report> {
  if (WITHOUT.postgres) throw new Failure('scale-postgres needs PostgreSQL');
  const server = await DatabaseServer.start('postgres');
  const provider = await startProvider();
  try {
    const daemon = await startDaemon({
      upstream: provider.url,
      env: {
        DB_DRIVER: 'postgres',
        DATABASE_URL: await server.newDatabase(),
        ENCRYPTION_KEY: canaryEncryptionKey(),
      },
    });
    const projects: WireProject[] = [];
    for (let n = 0; n < PROJECTS; n++) projects.push(await daemon.createProject());
    const secrets = Array.from({ length: RUNS }, () => mintSecret());
    for (const { id } of projects.slice(0, PROJECTS / 10)) {
      await daemon.manage('PATCH', `/manage/projects/${id}`, { is_active: false });
    }
    await makeTokens(daemon, projects, secrets);
    const figures: Figure[] = [await firstUseFigure((secret) => daemon.call(secret), secrets, 5)];
    figures.push(...(await pageFigures(daemon, projects, 50)));
    await daemon.stop();
    return { figures };
  } finally {
    await provider.stop();
    await server.remove();
  }
}

/** As in the other profile: of all states, over twenty days, a third of them capped, and a few with known secrets. */
async function makeTokens({ daemon }: TestDaemon, projects: readonly WireProject[], secrets: readonly string[]) {
  const { database } = daemon.stores;
  const nowMs = Date.now();
  const perRun = TOKENS / 40;
  for (let from = 0; from < TOKENS; from += perRun) {
    await database.transact((tx) =>
      tx.execute(
        `INSERT INTO tokens (${COLUMNS})
         SELECT gen_random_uuid()::text, encode(sha256(gen_random_uuid()::text::bytea), 'hex'), p.id, 'CI job ' || i, 'ci job ' || i,
           $nowMs::bigint - floor(random() * $span::bigint)::bigint, i % 7 <> 0,
           $nowMs::bigint - $span::bigint / 2 + floor(random() * $span::bigint)::bigint, $nowMs::bigint - i * 500,
           CASE WHEN i % 3 = 0 THEN 100 ELSE 0 END, floor(random() * 101)::bigint, 0, 'sk-wt-0000…0000'
         FROM generate_series($from::bigint, $to::bigint) AS n(i)
         JOIN (SELECT ROW_NUMBER() OVER (ORDER BY id) - 1 AS nr, id FROM projects) p ON p.nr = i % $projects::bigint`,
        { from, to: from + perRun - 1, nowMs, span: 20 * DAY_MS, projects: projects.length },
      ),
    );
  }
  for (const [n, secret] of secrets.entries()) {
    await database.transact((tx) =>
      tx.execute(
        `INSERT INTO tokens (${COLUMNS}) VALUES ($id, $digest, $projectId, '', '', 0, true, $expiresAtMs, $nowMs, 0, 0, 0, '')`,
        {
          id: `known-${n}`,
          digest: digestOf(secret),
          projectId: projects.at(-1)?.id ?? '',
          expiresAtMs: nowMs + DAY_MS,
          nowMs,
        },
      ),
    );
  }
  await database.transact((tx) => tx.execute(ADD_PURSES));
  // As the server does itself a minute later.
  await (await database.loadSequelize()).query('VACUUM ANALYZE tokens, purses');
}
