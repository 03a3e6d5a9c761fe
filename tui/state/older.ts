/** What a daemon of an older release answers: what it lacks is filled in, and its names are remembered to be told of. */
import * as older from '../../daemon/api/older.js';
import type { Answered, Streamed } from './exchange.js';
import type { State } from './state.js';

export { NOT_SAID } from '../../daemon/api/older.js';

/** So many are remembered: one is enough to know that the daemon is older. */
const MOST_NAMES = 20;

type Missed = (field: string) => void;

/** The answer with all fields that this release knows, and what of them was missing. */
export function completed(answered: Answered): { answered: Answered; lacks: readonly string[] } {
  const lacks = new Set<string>();
  const whole = filled(answered, (field) => lacks.add(field));
  return { answered: whole, lacks: [...lacks] };
}

function filled(it: Answered, missed: Missed): Answered {
  const { question } = it;
  // Question and answer belong together, which the compiler cannot see once they are apart.
  const whole = (answer: unknown) => ({ question, answer }) as Answered;
  const all = <T>(items: readonly T[], of: (item: T, missed: Missed) => T) => items.map((item) => of(item, missed));
  switch (it.question.of) {
    case 'status':
      return whole(older.statusOf(it.answer as never, missed));
    case 'token':
      return whole(older.tokenOf(it.answer as never, missed));
    case 'cache':
      return whole(older.cacheOf(it.answer as never, missed));
    case 'tokens':
    case 'dying': {
      const page = it.answer as Extract<Answered, { question: { of: 'tokens' } }>['answer'];
      return whole({ ...page, items: all(page.items, older.tokenOf) });
    }
    case 'everyToken':
      return whole(all(it.answer as Extract<Answered, { question: { of: 'everyToken' } }>['answer'], older.tokenOf));
    case 'projects':
      return whole(all(it.answer as Extract<Answered, { question: { of: 'projects' } }>['answer'], older.projectOf));
    case 'usage':
      return whole(all(it.answer as Extract<Answered, { question: { of: 'usage' } }>['answer'], older.usageLineOf));
    case 'audit': {
      const page = it.answer as Extract<Answered, { question: { of: 'audit' } }>['answer'];
      return whole({ ...page, items: all(page.items, older.recordOf) });
    }
    case 'tokenAudit': {
      const history = it.answer as Extract<Answered, { question: { of: 'tokenAudit' } }>['answer'];
      const { changes, lastUse } = history;
      return whole({
        ...history,
        changes: all(changes, older.recordOf),
        lastUse: lastUse && older.recordOf(lastUse, missed),
      });
    }
    default:
      return it;
  }
}

export const streamedWhole = (streamed: readonly Streamed[]): Streamed[] =>
  streamed.map((it) =>
    it.of === 'audit' ? { ...it, item: older.recordOf(it.item) } : { ...it, item: older.eventOf(it.item) },
  );

export function withLacks(state: State, lacks: readonly string[]): State {
  const news = lacks.filter((name) => !state.lacking.includes(name));
  return news.length === 0 ? state : { ...state, lacking: [...state.lacking, ...news].slice(0, MOST_NAMES) };
}
