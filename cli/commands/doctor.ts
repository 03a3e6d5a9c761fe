/** `llmp doctor`: diagnoses a deployment and suggests fixes. Most checks are in daemon/ops, and are loaded only if it runs. */
import type { Finding } from '../../daemon/ops/doctor.js';
import { command } from '../command.js';
import { daemonChecks, type DoctorInputs } from './doctor-daemon.js';
import { wrapped } from '../../config/wrapped.js';
import { EXIT } from '../../console/failure.js';
import { envFile } from './services.js';
import type { RenderOptions, TableColumn, View } from '../../console/table.js';
import { daemonEnvironment } from '../unit-environment.js';
import { WriteStream } from 'node:tty';
import { isAscii } from '../output.js';
import type { Shell } from '../shell.js';

export const doctorCommand = command({
  path: ['doctor'],
  runsUnbundled: true,
  summary: 'diagnose a deployment and suggest fixes (exits with 9 if a check failed)',
  examples: [
    ['doctor --env-file /etc/llmp/llmp.env', 'check the deployment with these settings'],
    ['doctor --env-file llmp.env -o json', 'print JSON for a script'],
  ],
  options: { envFile },
  async run(invocation) {
    const { output, options } = invocation;
    const findings = await diagnose(invocation, options.envFile);
    await showFindings(invocation, findings);
    output.note(summaryOf(findings));
    return hasFailed(findings) ? EXIT.checkFailed : EXIT.done;
  },
});

/** @param setUp given while the deployment is being set up. Its signal is aborted when the caller no longer needs the result. */
export async function diagnose(
  asking: DoctorInputs,
  envFile: string | undefined,
  setUp?: { signal: AbortSignal },
): Promise<Finding[]> {
  const { shell, output, globals } = asking;
  const { limitFor, runDoctor } = await import('../../daemon/ops/doctor.js');
  const env = await daemonEnvironment(asking, envFile);
  const more = [daemonChecks(asking, { env, envFile }), terminalChecks(shell)];
  return output.during(
    'running checks',
    runDoctor({
      env,
      envFile,
      now: shell.now(),
      more,
      limitMs: limitFor(globals.timeout ?? 0),
      ...(setUp && { isSetUp: true, ...setUp }),
    }),
  );
}

export const hasFailed = (findings: readonly Finding[]) => findings.some(({ state }) => state === 'failed');

export function summaryOf(findings: readonly Finding[]): string {
  const count = (wanted: Finding['state']) => findings.filter(({ state }) => state === wanted).length;
  return `${count('failed')} failed, ${count('warning')} warnings, ${count('ok')} ok, ${count('skipped')} skipped.`;
}

export async function showFindings(
  { output }: Pick<DoctorInputs, 'output'>,
  findings: readonly Finding[],
): Promise<void> {
  const rows = output.isForPeople ? findings.flatMap((each) => rowsOf(each, output.width)) : findings;
  await output.list(rows, findingView, { ok: !hasFailed(findings), checks: findings });
}

// ---- for people: evidence is wrapped, with the advice below it

const MARKS = {
  ok: { glyph: '●', ascii: '*', tint: 'green' },
  warning: { glyph: '▲', ascii: '!', tint: 'yellow' },
  failed: { glyph: '✗', ascii: 'x', tint: 'red' },
  skipped: { glyph: '○', ascii: '-', tint: 'dim' },
} as const;
// The width of the columns before: the state, and the longest name of a check.
const EVIDENCE_FROM = 36;
const NARROWEST = 30;

/** A row of the table. A continuation of the row above has no check and no state. */
type Row = Finding | { check: ''; state: null; evidence: string; advice: null };

function rowsOf(finding: Finding, width: number): Row[] {
  const room = Math.max(NARROWEST, width - EVIDENCE_FROM);
  const [first = '', ...rest] = wrapped(finding.evidence, room);
  // Advice is not wrapped, so that commands can be copied.
  const more = finding.advice === null ? rest : [...rest, `> ${finding.advice}`];
  return [
    { ...finding, evidence: first },
    ...more.map((evidence) => ({ check: '' as const, state: null, evidence, advice: null })),
  ];
}

function stateShown({ state }: Row, { ascii }: RenderOptions): string {
  return state === null ? '' : `${ascii ? MARKS[state].ascii : MARKS[state].glyph} ${state}`;
}

const columns: TableColumn<Row>[] = [
  {
    title: 'STATE',
    rank: 0,
    show: stateShown,
    tint: ({ state }) => (state === null ? undefined : MARKS[state].tint),
  },
  { title: 'CHECK', rank: 0, show: ({ check }) => check },
  { title: 'EVIDENCE', rank: 0, show: ({ evidence }) => evidence },
];

const findingView: View<Row> = {
  idOf: ({ check }) => check,
  fields: ['check', 'state', 'evidence', 'advice'],
  columns,
};

// ---- the check of the terminal: whether it can show the terminal UI

// The smallest size for the terminal UI.
const SMALLEST = { columns: 50, rows: 10 };

const terminalChecks = (shell: Shell) => ({ check: 'terminal', run: () => terminal(shell) });

// eslint-disable-next-line @typescript-eslint/require-await -- the signature of a check
async function* terminal({ stdout, env }: Shell): AsyncGenerator<Finding> {
  const check = 'terminal';
  if (stdout.isTTY !== true) {
    yield { check, state: 'skipped', evidence: 'standard output is not a terminal', advice: null };
    return;
  }
  const colors = 2 ** WriteStream.prototype.getColorDepth.call(stdout, env);
  const { columns = 0, rows = 0 } = stdout;
  const evidence = [
    `TERM=${env.TERM ?? ''}`,
    env.NO_COLOR ? 'no colors (NO_COLOR)' : `${colors} colors`,
    isAscii(env) ? 'ASCII' : 'UTF-8',
    `${columns}x${rows}`,
  ].join(', ');
  const advice = whatToDo(env, columns, rows);
  yield { check, state: advice === null ? 'ok' : 'warning', evidence, advice };
}

function whatToDo(env: NodeJS.ProcessEnv, columns: number, rows: number): string | null {
  if (!env.TERM || env.TERM === 'dumb') return 'export TERM=xterm-256color';
  if (isAscii(env) && !env.LLMP_ASCII) return 'export LC_ALL=C.UTF-8, or LLMP_ASCII=1 if ASCII is intended';
  // Some pseudo-terminals report 0, which means unknown.
  const isSmall = (columns > 0 && columns < SMALLEST.columns) || (rows > 0 && rows < SMALLEST.rows);
  return isSmall ? `Enlarge it to at least ${SMALLEST.columns}x${SMALLEST.rows}` : null;
}
