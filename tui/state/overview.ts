/** The rows of the overview that can be opened: what is wrong, the states of tokens, and tokens. */
import { quotedValue } from '../../console/query/terms.js';
import { type ProjectCost, projectCosts } from '../../console/columns/costs.js';
import { type Problem, problemsIn } from '../../console/problems.js';
import type { WireIncident, WireToken, WireTopRow } from '../../daemon/api/contract.js';
import { TOKEN_STATES, type TokenState } from '../../daemon/api/vocabulary.js';
import { opened } from './navigation.js';
import * as project from './project.js';
import { refreshed } from './refreshing.js';
import type { State, Transition } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';

/** Empty until the status is known. */
export const problems = ({ overview: { status, incidents, spenders: tokens }, projects: { all } }: State): Problem[] =>
  status ? problemsIn(status, incidents, { tokens, projects: all ?? [] }) : [];

/** What projects have cost lately, the highest first. */
export const costs = ({ overview }: State): ProjectCost[] => projectCosts(overview.costs ?? []);

/** What is wrong with a token or, without `token_id`, with a project itself. */
export const problemsOf = (state: State, whose: Pick<WireIncident, 'project_id' | 'token_id'>): Problem[] =>
  problems(state).filter(({ of }) => of?.project_id === whose.project_id && of.token_id === whose.token_id);

/** The tokens with the most failures in the last hour. */
export const worst = ({ overview: { lastHour } }: State): WireTopRow[] =>
  (lastHour?.rows ?? []).filter(({ errors }) => errors > 0);

type Row = { key: string } & (
  | { is: 'problem'; problem: Problem }
  | { is: 'state'; state: TokenState }
  | { is: 'worst'; row: WireTopRow }
  | { is: 'cost'; project: ProjectCost }
  | { is: 'expiring'; token: WireToken }
);

/** In the order of the screen. */
const rowsOf = (state: State): Row[] => [
  ...problems(state).map((problem): Row => ({ is: 'problem', key: `problem ${problem.id}`, problem })),
  ...TOKEN_STATES.map((ofState): Row => ({ is: 'state', key: ofState, state: ofState })),
  ...worst(state).map((row): Row => ({ is: 'worst', key: `worst ${row.token_id ?? ''}`, row })),
  ...costs(state).map((it): Row => ({ is: 'cost', key: `cost ${it.id}`, project: it })),
  ...state.overview.expiring.map((it): Row => ({ is: 'expiring', key: it.id, token: it })),
];

/** Without a selection, the first problem is selected. */
function selectedRow(state: State): Row | undefined {
  const rows = rowsOf(state);
  const [first] = rows;
  return rows.find(({ key }) => key === state.overview.selected) ?? (first?.is === 'problem' ? first : undefined);
}

/** Index of the selected row among those of its kind; null: none of them is selected. */
export function selectionIn(state: State, kind: Row['is']): number | null {
  const selected = selectedRow(state)?.key;
  const at = rowsOf(state)
    .filter(({ is }) => is === kind)
    .findIndex(({ key }) => key === selected);
  return at >= 0 ? at : null;
}

/** From no selection to the first row, or to the last one when moving up. */
export function movedBy(state: State, by: number): State {
  const rows = rowsOf(state);
  const selected = selectedRow(state)?.key;
  const at = rows.findIndex(({ key }) => key === selected);
  const from = at >= 0 ? at : by > 0 ? -1 : rows.length;
  const to = Math.max(0, Math.min(rows.length - 1, from + by));
  return { ...state, overview: { ...state.overview, selected: rows[to]?.key ?? null } };
}

export function whyNotOpened(state: State): string | null {
  const row = selectedRow(state);
  if (!row) return 'No row is selected; j and k select one';
  const hasScreen = row.is !== 'problem' || row.problem.incident !== null || row.problem.of !== null;
  return hasScreen ? null : (row.problem.remedy ?? 'It has no screen');
}

/** The filter for the events of a problem that is neither of a project nor of a token; null for other rows. */
export function eventsOfSelected(state: State): string | null {
  const row = selectedRow(state);
  const isOfUnknown = row?.is === 'problem' && row.problem.incident?.kind === 'unknown_tokens';
  return isOfUnknown ? `outcome:failed why:${quotedValue(row.problem.why)}` : null;
}

/** Opens what the selected row names. */
export function openSelected(state: State): Transition {
  const row = selectedRow(state);
  switch (row?.is) {
    case 'problem': {
      const { token_id: tokenId = null, project_id: projectId = null } = row.problem.of ?? {};
      if (tokenId !== null) return token.open(state, tokenId, null);
      return projectId === null ? [state] : project.open(state, projectId);
    }
    case 'state':
      return refreshed(tokens.withNewList(opened(state, { screen: 'tokens' }), { filter: `state:${row.state}` }));
    case 'worst':
      return row.row.token_id === undefined ? [state] : token.open(state, row.row.token_id, null);
    case 'cost':
      return project.open(state, row.project.id);
    case 'expiring':
      return token.open(state, row.token.id, row.token);
    default:
      return [state];
  }
}
