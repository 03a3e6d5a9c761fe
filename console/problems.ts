/** What is wrong now, from the status of an instance and from the traffic of all of them: one list for all front ends. */
import type {
  TokenQuery,
  WireIncident,
  WireIncidents,
  WireProject,
  WireStatus,
  WireToken,
} from '../daemon/api/contract.js';
import { counted, exact } from '../daemon/api/formats.js';
import type { BudgetPeriod } from '../daemon/api/vocabulary.js';
import { shortId } from './columns/cell-text.js';
import { budgetParts, NEARLY_SPENT, type Spender, useShown } from './columns/policies.js';

export interface Problem {
  /** Unique, and the same as long as the problem exists. */
  id: string;
  /** Whether requests fail. */
  isFailure: boolean;
  /** `project web`, `token ci in web`, `llmp`. */
  subject: string;
  /** In the words of the column WHY of events. */
  why: string;
  /** How much is concerned: `84 of 91 requests`. Empty for llmp itself. */
  extent: string;
  /** Null if nothing is known. */
  remedy: string | null;
  /** The incident; null for a problem of the instance or of a budget. */
  incident: WireIncident | null;
  /** The token or project concerned; null for a problem of the instance, and for unknown clients. */
  of: { project_id: string; token_id: string | null } | null;
}

/** Tokens and projects whose budgets may be nearly spent: see `NEARLY_SPENT_TOKENS`. */
export interface Spenders {
  tokens: readonly WireToken[];
  projects: readonly WireProject[];
}

/** Finds active tokens whose budgets are nearly spent. */
export const NEARLY_SPENT_TOKENS: TokenQuery = {
  state: 'active',
  left_under: String(Math.round((1 - NEARLY_SPENT) * 100)),
  sort: '-spent',
  limit: '10',
};

const DOCTOR = 'run `llmp doctor`, and look at the log of the daemon';

/** Only the daemon's machine can say more. */
const REMEDIES: Readonly<Record<string, string>> = {
  audit_file:
    'it cannot be written, or was changed: run `llmp audit verify` on the machine of the daemon, and look at its log',
};

/** Failures first. @param incidents null if they are unknown. @param spenders null to leave out budgets. */
export function problemsIn(
  { missing, degraded }: Pick<WireStatus, 'missing' | 'degraded'>,
  incidents: WireIncidents | null,
  spenders: Spenders | null = null,
): Problem[] {
  const own = (part: string, isFailure: boolean): Problem => ({
    id: `llmp ${part}`,
    isFailure,
    subject: 'llmp',
    why: `${isFailure ? 'missing' : 'degraded'}: ${part.replaceAll('_', ' ')}`,
    extent: '',
    remedy: REMEDIES[part] ?? DOCTOR,
    incident: null,
    of: null,
  });
  const problems = [
    ...missing.map((part) => own(part, true)),
    ...degraded.map((part) => own(part, false)),
    ...(incidents?.incidents ?? []).map(problemOf),
    ...(spenders?.projects ?? [])
      .filter(({ is_active: isActive }) => isActive)
      .flatMap((project) =>
        budgetProblem(project, `project ${project.name}`, { project_id: project.id, token_id: null }),
      ),
    ...(spenders?.tokens ?? []).flatMap((token) => {
      const { id, name, project_id, project_name: project } = token;
      return budgetProblem(token, `token ${name ?? shortId(id)} in ${project}`, { project_id, token_id: id });
    }),
  ];
  return problems.sort((one, other) => Number(other.isFailure) - Number(one.isFailure));
}

function problemOf(incident: WireIncident): Problem {
  const { kind, why, remedy, project_id: project, token_id: token } = incident;
  return {
    id: [kind, project, token, why].join(' '),
    isFailure: kind !== 'slow_provider',
    subject: subjectOf(incident),
    why,
    extent: extentOf(incident),
    remedy,
    incident,
    of: project === null ? null : { project_id: project, token_id: token },
  };
}

const WAIT: Readonly<Record<BudgetPeriod, string>> = {
  none: '',
  day: ', or wait until the next day (UTC)',
  month: ', or wait until the next month (UTC)',
};

/** Empty unless the budget is nearly spent. */
function budgetProblem(spender: Spender, subject: string, of: NonNullable<Problem['of']>): Problem[] {
  const { budget } = spender;
  const [part] = budgetParts(spender);
  if (budget === null || part === undefined || part.share < NEARLY_SPENT) return [];
  const isSpent = part.share >= 1;
  const isShadow = budget.mode === 'shadow';
  return [
    {
      id: `budget ${of.project_id} ${of.token_id ?? ''}`,
      isFailure: isSpent && !isShadow,
      subject,
      why: isSpent ? 'budget spent' : 'budget nearly spent',
      extent: useShown(part, budget),
      remedy: isShadow ? 'nothing is refused in shadow mode' : `raise the budget${WAIT[budget.period]}`,
      incident: null,
      of,
    },
  ];
}

function subjectOf({ kind, ...it }: WireIncident): string {
  const project = it.project_name ?? (it.project_id === null ? '' : shortId(it.project_id));
  switch (kind) {
    case 'unknown_tokens':
      return 'unknown clients';
    case 'failing_token':
      return `token ${it.token_name ?? shortId(it.token_id ?? '')} in ${project}`;
    default:
      return `project ${project}`;
  }
}

function extentOf({ kind, failures, requests, p50_ms: ms, earlier_p50_ms: earlierMs }: WireIncident): string {
  if (kind === 'slow_provider') return `p50 ${seconds(ms)}, before ${seconds(earlierMs)}`;
  return `${exact(failures)} of ${counted(requests, 'request')}`;
}

const seconds = (ms: number | null) => (ms === null ? '?' : `${(ms / 1000).toFixed(1)} s`);

/** In one line, for a report. */
export const problemShown = ({ subject, why, extent, remedy }: Omit<Problem, 'id'>): string =>
  [`${subject}: ${why}`, extent && ` (${extent})`, remedy !== null && `; ${remedy}`].filter(Boolean).join('');

export const NOTHING_WRONG = 'nothing is wrong';
