/** `llmp backup` and `llmp restore`: a SQLite database as one file. */
import { bytes, counted, exact } from '../../daemon/api/formats.js';
import { usdOf } from '../../daemon/api/money.js';
import type { BackupRequest, Restoring } from '../../daemon/ops/backup.js';
import { backupView, restoreView } from '../../console/views.js';
import { endedBy, EXIT } from '../../console/failure.js';
import { confirmed, dryRun } from '../batch.js';
import { command, type Invocation } from '../command.js';
import { OF_REQUESTS } from '../globals.js';
import { daemonEnvironment } from '../unit-environment.js';
import { envFile } from './services.js';

const backup = command({
  path: ['backup'],
  runsUnbundled: true,
  ignores: OF_REQUESTS,
  summary: 'back up a SQLite database, also while the daemon runs',
  examples: [['backup --env-file llmp.env backup.db', 'copy the database to backup.db']],
  argument: { name: 'FILE', meaning: 'the file to write; it must not exist', required: true, many: false },
  options: { envFile },
  prints: () => backupView.fields,
  async run(invocation) {
    const { output } = invocation;
    const { backUp } = await import('../../daemon/ops/backup.js');
    return untilInterrupted(invocation, async (request, interruptible) => {
      const progress = (part: number) => {
        output.progress(`Backing up: ${Math.floor(100 * part)} %`);
      };
      const { file, bytes: size, keyIds, missing } = await interruptible(backUp(request, progress));
      if (output.format !== 'table') await output.one({ file, bytes: size, key_ids: keyIds }, backupView);
      output.note(`Backed up to ${file}, ${bytes(size)}.`);
      output.note(
        `It does not contain the encryption key, whose fingerprint is ${keyIds.join(' and ')}. Keep that key in another place: without it the backup is useless.`,
      );
      if (missing.length === 0) return EXIT.done;
      output.warn(
        `the present settings do not have the key with the fingerprint ${missing.join(' and ')}: with them nobody can use this backup. Set ENCRYPTION_KEY to that key`,
      );
      return EXIT.checkFailed;
    });
  },
});

const restore = command({
  path: ['restore'],
  runsUnbundled: true,
  ignores: OF_REQUESTS,
  summary: 'put a backup in the place of the SQLite database',
  examples: [
    ['restore -n --env-file llmp.env backup.db', 'show what was served since the backup'],
    ['restore --env-file llmp.env backup.db', 'restore after a confirmation'],
  ],
  argument: { name: 'FILE', meaning: 'a file that `llmp backup` wrote', required: true, many: false },
  options: { envFile, dryRun },
  prints: () => restoreView.fields,
  async run(invocation) {
    const { options, output } = invocation;
    const { beginRestore } = await import('../../daemon/ops/backup.js');
    return untilInterrupted(invocation, async (request, interruptible) => {
      const restoring = await interruptible(beginRestore(request));
      try {
        const { hasLoss, sentences } = lossesOf(restoring);
        for (const sentence of sentences) output.finding(sentence);
        const isDryRun = options.dryRun === true;
        if (!isDryRun && hasLoss) await confirmed('Restore, and forget this?', invocation);
        const kept = isDryRun ? null : await interruptible(restoring.proceed());
        if (output.format !== 'table') {
          const { since, path, takenAtMs } = restoring;
          await output.one(
            {
              path,
              taken_at: takenAtMs === null ? null : new Date(takenAtMs).toISOString(),
              restored: !isDryRun,
              kept,
              requests: since?.requests ?? null,
              cost_usd: since === null ? null : usdOf(since.costNano),
              tokens_issued: since?.tokensIssued ?? null,
              tokens_revoked: since?.tokensRevoked ?? null,
              caps_loosened: since?.capsLoosened ?? null,
              records: since?.records ?? null,
              operators_changed: since?.operatorsChanged ?? null,
              trusts_changed: since?.trustsChanged ?? null,
              projects_deactivated: since?.projectsDeactivated ?? null,
              sessions_ended: since?.sessionsEnded ?? null,
              jwts_exchanged: since?.jwtsExchanged ?? null,
            },
            restoreView,
          );
        }
        if (isDryRun) {
          output.note('Nothing was changed.');
          return EXIT.done;
        }
        output.note(`Restored ${restoring.path}.${kept === null ? '' : ` The previous database is ${kept}.`}`);
        output.note(
          'Move the audit files to another folder, then start the daemon. When it runs, empty its cache: llmp cache purge --all',
        );
        return EXIT.done;
      } finally {
        await restoring.close();
      }
    });
  },
});

type Interruptible = <T>(work: Promise<T>) => Promise<T>;

/** @param work gives to `interruptible` what must remove an unfinished file before a signal ends the process. */
async function untilInterrupted(
  invocation: Invocation<{ envFile: typeof envFile }>,
  work: (request: BackupRequest, interruptible: Interruptible) => Promise<number>,
): Promise<number> {
  const { args, options, output, shell } = invocation;
  const ending = new AbortController();
  const { signal } = ending;
  const env = await daemonEnvironment(invocation, options.envFile);
  try {
    return await work({ env, envFile: options.envFile, file: args[0] ?? '', signal }, (each) =>
      shell.interruptible(each, (reason) => {
        ending.abort(reason);
      }),
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    output.note('Interrupted. Nothing was changed.');
    return endedBy(signal);
  }
}

/** What a restore would forget, in sentences. */
function lossesOf({ since, whyUnknown, takenAtMs }: Restoring): { hasLoss: boolean; sentences: string[] } {
  const taken = takenAtMs === null ? 'at an unknown time' : new Date(takenAtMs).toISOString();
  if (whyUnknown !== null)
    return {
      hasLoss: true,
      sentences: [
        `the backup was made ${taken}. What was served since is unknown: the present database cannot be compared with it (${whyUnknown})`,
      ],
    };
  if (since === null) {
    return {
      hasLoss: false,
      sentences: [`the backup was made ${taken}. There is no present database, so what was served since is unknown`],
    };
  }
  const { requests, costNano, tokensIssued, tokensRevoked, capsLoosened, records } = since;
  const { operatorsChanged, trustsChanged, projectsDeactivated, sessionsEnded, jwtsExchanged } = since;
  const losses = [
    [requests, `${counted(requests, 'request')} will no longer be counted`],
    [costNano, `${usdOf(costNano)} USD will no longer be counted as spent`],
    [capsLoosened, `${counted(capsLoosened, 'token')} with a cap can make the same requests once more`],
    [tokensIssued, `${counted(tokensIssued, 'token')} issued since will be unknown`],
    [tokensRevoked, `${counted(tokensRevoked, 'token')} revoked since will be VALID AGAIN`],
    [projectsDeactivated, `${counted(projectsDeactivated, 'project')} deactivated since will be ACTIVE AGAIN`],
    [
      operatorsChanged,
      `${counted(operatorsChanged, 'operator')} changed or deactivated since will have their FORMER RIGHTS`,
    ],
    [trustsChanged, `${counted(trustsChanged, 'trust')} changed or deleted since will give tokens AS BEFORE`],
    [sessionsEnded, `${counted(sessionsEnded, 'session')} ended since will be VALID AGAIN`],
    [jwtsExchanged, `${counted(jwtsExchanged, 'JWT')} exchanged since can be exchanged once more`],
    [records, `${exact(records)} audit records will be only in the audit files`],
  ] as const;
  const found = losses.filter(([count]) => count > 0).map(([, sentence]) => sentence);
  return {
    hasLoss: found.length > 0,
    sentences: [
      `the backup was made ${taken}. ${found.length === 0 ? 'Nothing was served since' : 'What was served since is forgotten'}`,
      ...found,
    ],
  };
}

export const backupCommands = [backup, restore];
