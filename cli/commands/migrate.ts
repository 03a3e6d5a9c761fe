/** `llmp migrate …`: manages the database schema, through the management API or directly. */
import { counted } from '../../daemon/api/formats.js';
import type { WireMigrations } from '../../daemon/api/contract.js';
import { wireMigrations } from '../../daemon/api/migrations.js';
import { command, type Invocation } from '../command.js';
import { OF_REQUESTS, optionsGiven } from '../globals.js';
import { flag, text } from '../option.js';
import { dryRun } from '../batch.js';
import { EXIT, usage } from '../../console/failure.js';
import { copy } from './migrate-copy.js';
import { envFile } from './services.js';
import { daemonEnvironment } from '../unit-environment.js';
import { type Migration, migrationView, rekeyedView } from '../../console/views.js';

const whereOptions = {
  direct: flag('--direct', 'open the database directly (SQLite: stop the daemon first)'),
  envFile: text('--env-file <FILE>', 'with --direct: a settings file, as for `llmp daemon`'),
};

const status = command({
  path: ['migrate', 'status'],
  runsUnbundled: true,
  summary: 'show applied and pending migrations',
  examples: [
    ['migrate status --exit-code', 'exit with 9 if migrations are pending'],
    ['migrate status --direct --env-file llmp.env', 'read the database without a daemon'],
  ],
  options: { ...whereOptions, exitCode: flag('--exit-code', 'exit with 9 if migrations are pending') },
  async run(invocation) {
    const { output, options } = invocation;
    const migrations = await withMigrations(invocation, (source) => source.status());
    await output.list(rowsOf(migrations), migrationView, migrations);
    const { pending } = migrations;
    output.note(
      pending.length === 0
        ? 'Up to date.'
        : `${counted(pending.length, 'migration')} pending. Apply with: llmp migrate up`,
    );
    return options.exitCode && pending.length > 0 ? EXIT.checkFailed : EXIT.done;
  },
});

const up = command({
  path: ['migrate', 'up'],
  runsUnbundled: true,
  summary: 'apply all pending migrations',
  examples: [
    ['migrate up', 'apply migrations through the running daemon'],
    ['migrate up --direct --env-file llmp.env', 'apply migrations without a daemon'],
  ],
  options: { ...whereOptions, dryRun },
  prints: () => migrationView.fields,
  async run(invocation) {
    const { output, options } = invocation;
    if (options.dryRun) {
      const status = await withMigrations(invocation, (source) => source.status());
      await output.list(rowsOf(status), migrationView, status);
      const pending = status.pending.length === 0 ? 'nothing' : status.pending.join(', ');
      output.note(`Would apply ${pending}. Nothing was changed.`);
      return EXIT.done;
    }
    const [before, after] = await withMigrations(invocation, async (source) => [
      await source.status(),
      await source.up(),
    ]);
    if (output.format !== 'table') await output.list(rowsOf(after), migrationView, after);
    const wereApplied = new Set(before.applied.map(({ name }) => name));
    const applied = after.applied.map(({ name }) => name).filter((name) => !wereApplied.has(name));
    output.note(applied.length === 0 ? 'Nothing to do: up to date.' : `Applied ${applied.join(', ')}.`);
    return EXIT.done;
  },
});

interface MigrationSource {
  status(): Promise<WireMigrations>;
  up(): Promise<WireMigrations>;
}

async function withMigrations<T>(
  invocation: Invocation<typeof whereOptions>,
  work: (source: MigrationSource) => Promise<T>,
): Promise<T> {
  const { options, globals, output, connect } = invocation;
  if (!options.direct) {
    if (options.envFile !== undefined) throw usage('--env-file requires --direct', { advice: 'Add --direct' });
    const client = await connect();
    return work({ status: () => client.migrations(), up: () => client.migrateUp() });
  }
  const [ofDaemon] = optionsGiven(['server', 'context'], globals);
  if (ofDaemon !== undefined) throw usage(`--direct and ${ofDaemon} exclude each other`, { advice: 'Use one of them' });
  const { directMigrations } = await import('../../daemon/ops/migrations.js');
  const database = directMigrations(await daemonEnvironment(invocation, options.envFile), options.envFile);
  const source = {
    status: async () => wireMigrations(await database.status()),
    up: async () => wireMigrations(await database.up()),
  };
  try {
    return await output.during('working on the database', work(source));
  } finally {
    await database.close();
  }
}

function rowsOf({ applied, pending }: WireMigrations): Migration[] {
  return [
    ...applied.map((migration) => ({ ...migration, state: 'applied' as const })),
    ...pending.map((name) => ({ name, state: 'pending' as const, applied_at: null })),
  ];
}

const rekey = command({
  path: ['migrate', 'rekey'],
  runsUnbundled: true,
  ignores: OF_REQUESTS,
  summary: 're-encrypt the upstream keys with the new ENCRYPTION_KEY',
  examples: [
    ['migrate rekey --env-file llmp.env', 're-encrypt while the daemons run with both keys'],
    ['migrate rekey -n', 'count the keys to re-encrypt'],
  ],
  options: {
    dryRun,
    envFile,
  },
  prints: () => rekeyedView.fields,
  async run(invocation) {
    const { options, output } = invocation;
    const { rekey } = await import('../../daemon/ops/migrations.js');
    const isDryRun = options.dryRun === true;
    const work = rekey(await daemonEnvironment(invocation, options.envFile), options.envFile, isDryRun);
    const { resealed, unreadable } = await output.during('re-encrypting upstream keys', work);
    if (output.format !== 'table') await output.one({ resealed, unreadable: unreadable.length }, rekeyedView);
    const keys = counted(resealed, 'upstream key');
    output.note(isDryRun ? `Would re-encrypt ${keys}. Nothing was changed.` : `Re-encrypted ${keys}.`);
    if (unreadable.length === 0) {
      if (!isDryRun) output.note('You can now remove ENCRYPTION_KEY_PREVIOUS.');
      return EXIT.done;
    }
    output.finding(`cannot decrypt the upstream key of ${unreadable.join(', ')} with either encryption key`);
    return EXIT.checkFailed;
  },
});

export const migrateCommands = [status, up, rekey, copy];
