/** `llmp migrate copy`: copies everything to another database. */
import type { CopyProgress, CopyReport } from '../../daemon/ops/copy.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { copiedTableView } from '../../console/views.js';
import { EXIT, usage } from '../../console/failure.js';
import { command } from '../command.js';
import { OF_REQUESTS } from '../globals.js';
import { flag, text } from '../option.js';
import type { Output } from '../output.js';
import { daemonEnvironment } from '../unit-environment.js';
import { envFile } from './services.js';

export const copy = command({
  path: ['migrate', 'copy'],
  runsUnbundled: true,
  ignores: OF_REQUESTS,
  summary: 'copy everything to an empty database of the same or another kind',
  examples: [
    ['migrate copy --env-file llmp.env --to-env-file new.env', 'copy to the database that new.env names'],
    ['migrate copy --prepare --to-env-file new.env', 'first copy what never changes again, while the daemon runs'],
    ['migrate copy --to sqlite:llmp-new.db', 'copy to a file, with the same encryption key'],
  ],
  options: {
    envFile,
    to: text('--to <URL>', 'the new database, as in DATABASE_URL. With a password, use --to-env-file'),
    toEnvFile: text('--to-env-file <FILE>', 'the settings file of the new database: DATABASE_URL, ENCRYPTION_KEY'),
    prepare: flag('--prepare', 'copy only what never changes again; the daemon may run'),
    resume: flag('--resume', 'continue a copy that was interrupted'),
  },
  prints: () => copiedTableView.fields,
  async run(invocation) {
    const { options, output, shell } = invocation;
    const { to: url, toEnvFile, prepare = false, resume = false } = options;
    if ((url === undefined) === (toEnvFile === undefined))
      throw usage('give either --to or --to-env-file', { advice: 'Name the new database with one of them' });
    const { copyDatabase } = await import('../../daemon/ops/copy.js');
    const beganMs = shell.now();
    let isInterrupted = false;
    const work = copyDatabase({
      env: await daemonEnvironment(invocation, options.envFile),
      envFile: options.envFile,
      to: url === undefined ? { envFile: toEnvFile ?? '' } : { url },
      isResume: resume,
      isPrepare: prepare,
      onProgress: progressOn(output, () => shell.now()),
      isInterrupted: () => isInterrupted,
    });
    const report = await shell
      .interruptible(work, () => {
        isInterrupted = true;
      })
      .catch((error: unknown) => {
        if (isInterrupted) output.warn(`interrupted. Continue with the same command${prepare ? '' : ' and --resume'}`);
        throw error;
      });
    await show(output, report);
    if (report.differing.length > 0) {
      output.finding(
        `the copy differs in ${report.differing.join(', ')}. Do not use it: empty the new database, and copy again`,
      );
      return EXIT.checkFailed;
    }
    const rows = report.tables.reduce((sum, each) => sum + each.rows, 0);
    const took = `${exact(Math.max(1, Math.round((shell.now() - beganMs) / 1000)))} s`;
    output.note(`Copied and checked ${counted(rows, 'row')} from ${report.from} to ${report.to}. It took ${took}.`);
    output.note(
      report.isComplete
        ? 'Start the daemon with the new database. Never start it with the old one again: what is served there does not count here.'
        : 'Stop the daemon, then copy the rest: the same command without --prepare.',
    );
    return EXIT.done;
  },
});

async function show(output: Output, { tables, differing, isComplete, from, to }: CopyReport): Promise<void> {
  const rows = tables.map((each) => ({ ...each, is_equal: !differing.includes(each.table) }));
  await output.list(rows, copiedTableView, { from, to, complete: isComplete, tables: rows });
}

const SHOWN_EVERY_MS = 200;

/** Shows the table, its rows, the rate and the time left. */
function progressOn(output: Output, now: () => number): (progress: CopyProgress) => void {
  let [shown, begun, part] = [0, now(), ''];
  return ({ table, rows, all, isCheck }) => {
    const nowMs = now();
    const name = `${isCheck ? 'Checking' : 'Copying'} ${table}`;
    if (name !== part) [part, begun] = [name, nowMs];
    if (nowMs - shown < SHOWN_EVERY_MS) return;
    shown = nowMs;
    const rate = rows / Math.max(0.001, (nowMs - begun) / 1000);
    const of = all === null ? '' : ` of ${exact(all)}`;
    const left = all === null || rate < 1 ? '' : `, ${exact(Math.ceil(Math.max(0, all - rows) / rate))} s left`;
    output.progress(`${name}: ${exact(rows)}${of} rows, ${exact(Math.round(rate))} rows/s${left}`);
  };
}
