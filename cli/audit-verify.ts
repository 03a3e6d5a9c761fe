/** `llmp audit verify`: whether the audit files are whole. */
import { command } from './command.js';
import { EXIT } from './failure.js';
import { envFile } from './service.js';
import { daemonEnvironment } from './unit-surroundings.js';
import { type VerifiedAudit, verifiedView } from './views.js';

const SAYS: Record<string, string> = {
  changed: 'was changed',
  removed: 'was removed',
  inserted: 'was inserted',
  reordered: 'is not in its place',
  cut_off: 'and all behind it were cut off',
  rewritten: 'is the first that may have been rewritten',
};

export const auditVerify = command({
  path: ['manage', 'audit', 'verify'],
  summary: 'say whether audit files are as they were written; exit 9 if not',
  examples: [
    ['audit verify', 'AUDIT_LOG_FILE and the files that it was before'],
    ['audit verify audit-use.log.1 audit-use.log', 'these, of one chain, in whatever order'],
  ],
  argument: { name: 'FILE', meaning: 'files to verify', required: false, many: true },
  options: { envFile },
  async run(invocation) {
    const { args, options, output } = invocation;
    const { verifyAudit } = await import('../daemon/ops/audit-verify.js');
    const env = await daemonEnvironment(invocation, options.envFile);
    const verdict = await output.during('reading the audit files', verifyAudit(env, options.envFile, args));
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
    };
    if (output.format !== 'table') await output.one(shown, verifiedView);
    for (const { line, file, at } of torn)
      output.note(`line ${line} (${file}:${at}) was torn by a crash and chained over`);
    if (!verdict.isAnchored) output.warn('unanchored: nothing in a database to compare the files with');
    if (!fault) {
      output.note(`${verdict.lines} lines are as they were written.`);
      return EXIT.done;
    }
    const where = fault.file === null ? '' : ` (${fault.file}:${fault.at ?? 0})`;
    output.say(`line ${fault.line}${where} ${SAYS[fault.kind] ?? fault.kind}`);
    return EXIT.checkFailed;
  },
});
