/** `llmp audit verify`: verifies that audit files are unchanged and complete. */
import { counted } from '../../daemon/api/formats.js';
import { integer } from '../../config/kinds.js';
import type { Fault } from '../../daemon/ops/audit-verify.js';
import { command } from '../command.js';
import { OF_REQUESTS } from '../globals.js';
import { flag, value } from '../option.js';
import { EXIT, usage } from '../../console/failure.js';
import { envFile } from './services.js';
import { daemonEnvironment } from '../unit-environment.js';
import { type VerifiedAudit, verifiedView } from '../../console/views.js';

const FAULT_MESSAGES: Record<Fault['kind'], (fault: Fault) => string> = {
  changed: ({ line }) => `line ${line} was changed`,
  removed: ({ line }) => `line ${line} was removed`,
  inserted: ({ line }) => `line ${line} was inserted`,
  reordered: ({ line }) => `line ${line} was moved`,
  cut_off: ({ line }) => `line ${line} and all lines after it were cut off`,
  rewritten: ({ line }) => `the file may have been rewritten from line ${line} on`,
  unreadable: ({ line, detail }) => `the file cannot be read from line ${line} on: ${detail}`,
  unanchored: ({ line }) =>
    `the database has no anchor for the lines from ${line} on, although it knows the file: they may all be forged`,
  missing_record: ({ line, detail }) =>
    `record ${detail} is in the database but not before line ${line} of the file: it was removed, or is not yet written`,
  foreign_record: ({ line, detail }) => `line ${line} does not match record ${detail} in the database`,
};

export const auditVerify = command({
  path: ['manage', 'audit', 'verify'],
  runsUnbundled: true,
  ignores: OF_REQUESTS,
  summary: 'verify that audit files are unchanged and complete (exits with 9 if not)',
  examples: [
    ['audit verify', 'verify AUDIT_LOG_FILE and its rotated files, also compressed ones'],
    ['audit verify --uses', 'verify AUDIT_USE_LOG_FILE and its rotated files'],
    ['audit verify --from-line 120000', 'verify the rest after older files were deleted on purpose'],
    ['audit verify audit-use.log.1 audit-use.log', 'verify these files, given in any order'],
  ],
  argument: { name: 'FILE', meaning: 'files to verify', required: false, many: true },
  options: {
    uses: flag('--uses', 'verify AUDIT_USE_LOG_FILE and its rotated files'),
    fromLine: value('--from-line <NUMBER>', integer(1, Number.MAX_SAFE_INTEGER), 'start at this line'),
    envFile,
  },
  async run(invocation) {
    const { args, options, output } = invocation;
    if (options.uses && args.length > 0) throw usage('--uses and file names exclude each other');
    const { verifyAudit } = await import('../../daemon/ops/audit-verify.js');
    const env = await daemonEnvironment(invocation, options.envFile);
    const asked = { files: args, ofUses: options.uses ?? false, fromLine: options.fromLine ?? null };
    const verdict = await output.during('reading the audit files', verifyAudit(env, options.envFile, asked));
    const { fault, torn } = verdict;
    const shown: VerifiedAudit = {
      verdict: fault ? fault.kind : 'whole',
      line: fault?.line ?? null,
      file: fault?.file ?? null,
      at: fault?.at ?? null,
      first: verdict.first,
      last: verdict.last,
      torn: torn.length,
      anchors: verdict.isAnchored ? 'anchored' : 'unanchored',
      records: verdict.isCompared ? 'compared' : 'not_compared',
    };
    if (output.format !== 'table') await output.one(shown, verifiedView);
    for (const { line, file, at } of torn) output.note(`line ${line} (${file}:${at}) was left incomplete by a crash`);
    for (const file of verdict.ignored) output.warn(`${file} was skipped: the uncompressed file exists as well`);
    if (!verdict.isAnchored && !fault) output.warn('unanchored: the database has no anchors to compare the files with');
    if (!fault) {
      output.note(`Verified ${counted(verdict.lines, 'line')}.`);
      return EXIT.done;
    }
    const where = fault.file === null ? '' : ` (${fault.file}${fault.at === null ? '' : `:${fault.at}`})`;
    output.finding(FAULT_MESSAGES[fault.kind](fault).replace(`line ${fault.line}`, `line ${fault.line}${where}`));
    return EXIT.checkFailed;
  },
});
