/** The keys of the filter lines. */
import type { Completion, FilteredScreen, FilterKey, KnownNames } from './types.js';
import * as values from './values.js';

const spans = (...texts: readonly string[]): Completion[] => texts.map((insert) => ({ insert, what: '' }));

/** The filter keys of a screen, for help and completion. */
export function keysOf(screen: FilteredScreen, { projects, tokens, models = [] }: KnownNames): FilterKey[] {
  const project: FilterKey = { name: 'project', what: 'name or ID', values: values.projectCompletions(projects) };
  const token: FilterKey = {
    name: 'token',
    what: tokens ? 'name or ID' : 'its whole ID',
    values: (tokens ?? []).map(({ id, name }) => ({ insert: id, what: name ?? '' })),
  };
  const model = (what: string): FilterKey => ({ name: 'model', what, values: spans(...models) });
  switch (screen) {
    case 'tokens':
      return [
        { name: 'state', what: 'for example active or !revoked', values: values.tokenState.completions },
        project,
        { name: 'expires', what: 'for example <2h or >7d', values: spans('<1h', '<1d', '<7d', '>7d', '>30d') },
        { name: 'idle', what: 'not used for, for example >30d', values: spans('>7d', '>30d', '>90d') },
        { name: 'created', what: 'for example <7d ago', values: spans('<1h', '<1d', '<7d', '>30d', '>90d') },
        { name: 'errors', what: 'failures since yesterday (UTC), for example >10', values: spans('>0', '>10', '>100') },
        model('a part of its name, since yesterday (UTC)'),
        { name: 'allows', what: 'a model that it may use, for example gpt-5*', values: spans(...models) },
        { name: 'limited', what: 'yes or no: whether it has limits', values: values.isLimited.completions },
        { name: 'used', what: 'share of the cap, for example >90%', values: spans('>50%', '>90%', '<10%') },
        { name: 'budget', what: 'yes, no or its mode', values: values.budget.completions },
        {
          name: 'spent',
          what: 'US dollars in the period of its budget, for example >10',
          values: spans('>0', '>1', '>10', '>100'),
        },
        {
          name: 'left',
          what: 'share of its budget that is left, for example <20%',
          values: spans('<50%', '<20%', '<5%'),
        },
        { name: 'by', what: 'who has issued it, for example operator:ana', values: values.issuer.completions },
      ];
    case 'projects':
      return [
        { name: 'state', what: 'active or inactive', values: values.projectState.completions },
        { name: 'provider', what: 'for example openai or default', values: values.provider.completions },
      ];
    case 'audit':
      return [
        { name: 'action', what: 'for example token.revoke', values: values.action.completions },
        { name: 'actor', what: 'who did it', values: values.actor.completions },
        { name: 'outcome', what: 'how it ended', values: values.outcome.completions },
        project,
        token,
        { name: 'batch', what: 'its whole ID: the changes of one command or dialog', values: [] },
        { name: 'since', what: 'for example 24h', values: spans('1h', '24h', '7d') },
        { name: 'until', what: 'for example 1h', values: spans('1h', '24h', '7d') },
      ];
    case 'events':
      return [
        { name: 'status', what: 'for example 4xx,5xx', values: values.statuses.completions },
        { name: 'outcome', what: 'for example failed or refused', values: values.requestOutcome.completions },
        { name: 'why', what: 'a part of the cause, for example revoked', values: values.cause.completions },
        { name: 'code', what: 'error code, for example rate_limited', values: values.errorCode.completions },
        model('a part of its name'),
        { name: 'took', what: 'for example >500ms', values: spans('>500ms', '>2s', '>10s') },
        { name: 'kind', what: 'kind of event', values: values.kind.completions },
        project,
        token,
      ];
    case 'top':
      return [project, model('a part of its name')];
  }
}
