/** `llmp audit verify`: whether the audit files are whole. */
import { integer } from '../../config/kinds.js';
import type { Fault } from '../../daemon/ops/audit-verify.js';
import { command } from '../command.js';
import { flag, value } from '../option.js';
import { EXIT, usage } from '../../console/failure.js';
import { envFile } from '../service.js';
import { daemonEnvironment } from '../unit-surroundings.js';
import { type VerifiedAudit, verifiedView } from '../../console/views.js';

const SAYS: Record<Fault['kind'], (fault: Fault) => string> = {
  changed: ({ line }) => `line ${line} was changed`,
  removed: ({ line }) => `line ${line} was removed`,
  inserted: ({ line }) => `line ${line} was inserted`,
  reordered: ({ line }) => `line ${line} is not in its place`,
  cut_off: ({ line }) => `line ${line} and all behind it were cut off`,
  rewritten: ({ line }) => `line ${line} is the first that may have been rewritten`,
  unreadable: ({ line, detail }) => `line ${line} and those behind it cannot be read: ${detail}`,
  unanchored: ({ line }) =>
    `the database knows the file, and nothing of its lines from ${line} on: they may all be forged`,
  missing_record: ({ line, detail }) =>
    `record ${detail} is in the database and not in the file, where it should be before line ${line}: it was removed, or is not copied yet`,
  foreign_record: ({ line, detail }) => `line ${line} does not say what the database has as record ${detail}`,
};

export const auditVerify = command({
  path: ['manage', 'audit', 'verify'],
  summary: 'verify that audit files are unchanged and complete (exits with 9 if not)',
  examples: [
    ['audit verify', 'AUDIT_LOG_FILE and its rotated files, compressed ones too'],
    ['audit verify --uses', 'AUDIT_USE_LOG_FILE and its rotated files'],
    ['audit verify --from-line 120000', 'after older files were deleted on purpose'],
    ['audit verify audit-use.log.1 audit-use.log', 'these files, in any order'],
  ],
  argument: { name: 'FILE', meaning: 'files to verify', required: false, many: true },
  options: {
    uses: flag('--uses', 'AUDIT_USE_LOG_FILE and its rotated files'),
    fromLine: value('--from-line <NUMBER>', integer(1, Number.MAX_SAFE_INTEGER), 'begin at this line'),
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
    for (const file of verdict.ignored) output.warn(`${file} was not read: the same file is there uncompressed`);
    if (!verdict.isAnchored && !fault) output.warn('unanchored: nothing in a database to compare the files with');
    if (!fault) {
      output.note(`${verdict.lines} lines verified.`);
      return EXIT.done;
    }
    const where = fault.file === null ? '' : ` (${fault.file}${fault.at === null ? '' : `:${fault.at}`})`;
    output.say(SAYS[fault.kind](fault).replace(`line ${fault.line}`, `line ${fault.line}${where}`));
    return EXIT.checkFailed;
  },
});
