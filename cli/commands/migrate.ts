/** `llmp migrate …`: the database's schema, over the management API or directly. */
import type { WireMigrations } from '../../daemon/api/contract.js';
import { wireMigrations } from '../../daemon/api/migrations.js';
import { command, type Invocation } from '../command.js';
import { flag, text } from '../option.js';
import { dryRun } from '../batch.js';
import { EXIT, usage } from '../../console/failure.js';
import { envFile } from '../service.js';
import { daemonEnvironment } from '../unit-surroundings.js';
import { type Migration, migrationView, rekeyedView } from '../../console/views.js';

const whereOptions = {
  direct: flag('--direct', 'open the database directly; no daemon may be running'),
  envFile: text('--env-file <FILE>', 'with --direct: a file of settings, as for `llmp daemon`'),
};

const status = command({
  path: ['migrate', 'status'],
  summary: 'show applied and pending migrations',
  examples: [
    ['migrate status --exit-code', 'exit with 9 if migrations are pending'],
    ['migrate status --direct --env-file llmp.env', 'without a daemon'],
  ],
  options: { ...whereOptions, exitCode: flag('--exit-code', 'exit with 9 if migrations are pending') },
  async run(invocation) {
    const { output, options } = invocation;
    const migrations = await withMigrations(invocation, (source) => source.status());
    await output.list(rowsOf(migrations), migrationView, migrations);
    const { pending } = migrations;
    output.note(pending.length === 0 ? 'Up to date.' : `${pending.length} pending. Apply: llmp migrate up`);
    return options.exitCode && pending.length > 0 ? EXIT.checkFailed : EXIT.done;
  },
});

const up = command({
  path: ['migrate', 'up'],
  summary: 'apply all pending migrations',
  examples: [
    ['migrate up', 'through the running daemon'],
    ['migrate up --direct --env-file llmp.env', 'without a daemon'],
  ],
  options: { ...whereOptions, dryRun },
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

interface Source {
  status(): Promise<WireMigrations>;
  up(): Promise<WireMigrations>;
}

async function withMigrations<T>(
  invocation: Invocation<typeof whereOptions>,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  const { options, output, connect } = invocation;
  if (!options.direct) {
    if (options.envFile !== undefined) throw usage('--env-file is for --direct only', { advice: 'Add --direct' });
    const client = await connect();
    return work({ status: () => client.migrations(), up: () => client.migrateUp() });
  }
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
  summary: 'encrypt the upstream keys again, with the new ENCRYPTION_KEY',
  examples: [
    ['migrate rekey --env-file llmp.env', 'while the daemons run with both keys'],
    ['migrate rekey -n', 'count the keys to encrypt'],
  ],
  options: {
    dryRun,
    envFile,
  },
  async run(invocation) {
    const { options, output } = invocation;
    const { rekey } = await import('../../daemon/ops/rekey.js');
    const isRehearsal = options.dryRun === true;
    const work = rekey(await daemonEnvironment(invocation, options.envFile), options.envFile, isRehearsal);
    const { resealed, unreadable } = await output.during('sealing upstream keys', work);
    if (output.format !== 'table') await output.one({ resealed, unreadable: unreadable.length }, rekeyedView);
    const keys = `${resealed} upstream key${resealed === 1 ? '' : 's'}`;
    output.note(
      isRehearsal
        ? `Would seal ${keys} with ENCRYPTION_KEY. Nothing was changed.`
        : `Sealed ${keys} with ENCRYPTION_KEY.`,
    );
    if (unreadable.length === 0) {
      if (!isRehearsal) output.note('You can now remove ENCRYPTION_KEY_PREVIOUS.');
      return EXIT.done;
    }
    output.say(`neither key opens the upstream key of ${unreadable.join(', ')}`);
    return EXIT.checkFailed;
  },
});

export const migrateCommands = [status, up, rekey];
