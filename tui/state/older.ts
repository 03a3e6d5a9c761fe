/** Responses of an older daemon: fills in missing fields, and remembers their names for a warning. */
import * as older from '../../daemon/api/older-responses.js';
import type { DataResponse, Streamed } from './exchange.js';
import type { State } from './state.js';

/** Limit of remembered names: one is enough to know that the daemon is older. */
const MAX_NAMES = 20;

type Missed = (field: string) => void;

/** The data with all fields of this release, and the names of those that were missing. */
export function completed(answered: DataResponse): { answered: DataResponse; lacks: readonly string[] } {
  const lacks = new Set<string>();
  const whole = filled(answered, (field) => lacks.add(field));
  return { answered: whole, lacks: [...lacks] };
}

function filled(it: DataResponse, missed: Missed): DataResponse {
  const { request } = it;
  // Request and data have matching types, which the compiler cannot infer once they are separate.
  const whole = (data: unknown) => ({ request, data }) as DataResponse;
  const all = <T>(items: readonly T[], of: (item: T, missed: Missed) => T) => items.map((item) => of(item, missed));
  switch (it.request.of) {
    case 'status':
      return whole(older.completeStatus(it.data as never, missed));
    case 'token':
      return whole(older.completeToken(it.data as never, missed));
    case 'cache':
      return whole(older.completeCache(it.data as never, missed));
    case 'tokens':
    case 'expiring': {
      const page = it.data as Extract<DataResponse, { request: { of: 'tokens' } }>['data'];
      return whole({ ...page, items: all(page.items, older.completeToken) });
    }
    case 'allTokens':
      return whole(
        all(it.data as Extract<DataResponse, { request: { of: 'allTokens' } }>['data'], older.completeToken),
      );
    case 'projects':
      return whole(
        all(it.data as Extract<DataResponse, { request: { of: 'projects' } }>['data'], older.completeProject),
      );
    case 'usage':
      return whole(
        all(it.data as Extract<DataResponse, { request: { of: 'usage' } }>['data'], older.completeUsageLine),
      );
    case 'audit': {
      const page = it.data as Extract<DataResponse, { request: { of: 'audit' } }>['data'];
      return whole({ ...page, items: all(page.items, older.completeRecord) });
    }
    case 'events': {
      const page = it.data as Extract<DataResponse, { request: { of: 'events' } }>['data'];
      return whole({ ...page, items: all(page.items, older.completeEvent) });
    }
    case 'projectAudit':
      return whole(
        all(it.data as Extract<DataResponse, { request: { of: 'projectAudit' } }>['data'], older.completeRecord),
      );
    case 'tokenAudit': {
      const history = it.data as Extract<DataResponse, { request: { of: 'tokenAudit' } }>['data'];
      const { changes, lastUse } = history;
      return whole({
        ...history,
        changes: all(changes, older.completeRecord),
        lastUse: lastUse && older.completeRecord(lastUse, missed),
      });
    }
    default:
      return it;
  }
}

export const streamedWhole = (streamed: readonly Streamed[]): Streamed[] =>
  streamed.map((it) =>
    it.of === 'audit' ? { ...it, item: older.completeRecord(it.item) } : { ...it, item: older.completeEvent(it.item) },
  );

export function withLacks(state: State, lacks: readonly string[]): State {
  const news = lacks.filter((name) => !state.missingFields.includes(name));
  return news.length === 0 ? state : { ...state, missingFields: [...state.missingFields, ...news].slice(0, MAX_NAMES) };
}
