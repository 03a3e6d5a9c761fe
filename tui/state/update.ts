/** The next state: what an action makes of one, and what is to be done for it. No clock, no daemon, no terminal. */
import * as changing from './changing.js';
import * as connection from './connection.js';
import type { Action, Effect, Failure, Question, Timed } from './exchange.js';
import * as feeds from './feeds.js';
import * as filtering from './filtering.js';
import { above } from './navigation.js';
import * as projects from './projects.js';
import { refreshed, streams, woke } from './refreshing.js';
import { type Sample, saying, type State, type Step, withLayer } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';
import { beginning } from './beginning.js';

const SECOND_MS = 1_000;
/** As many samples as the chart of the overview can be wide. */
const SAMPLES_KEPT = 120;

/** What keys do stands in a table of its own, that knows the reducers; so it is handed in. */
export interface Press {
  key(state: State, key: string): Step;
  paste(state: State, text: string): Step;
}

export function update(before: State, action: Timed, press: Press): Step {
  const [state, ...effects] = reduced({ ...before, nowMs: action.atMs }, action, press);
  const wanted = streams(state);
  const isFollowed = JSON.stringify(wanted) === JSON.stringify(streams(before));
  return isFollowed && action.on !== 'began' && action.on !== 'connected'
    ? [state, ...effects]
    : [state, ...effects, { do: 'follow', streams: wanted }];
}

function reduced(state: State, action: Action, press: Press): Step {
  switch (action.on) {
    case 'began':
      return begun(state);
    case 'key':
      return press.key(state, action.key);
    case 'paste':
      return press.paste(state, action.text);
    case 'resized':
      return resized(state, action);
    case 'woke':
      if (action.name === 'refresh') return woke(state);
      return action.name === 'filter' ? filtering.settled(state) : second(state);
    case 'answered': {
      const [next, ...effects] = answered(state, action);
      const [live, ...more] = connection.answered(next);
      return [live, ...effects, ...more];
    }
    case 'failed':
      return failed(state, action.question, action.failure);
    case 'progress':
      return [{ ...state, progress: { words: action.words, done: action.done, of: action.of } }];
    case 'changed':
      return changed(state, action);
    case 'refused':
      return refused(state, action);
    case 'streamed':
      return [feeds.streamed(state, action.streamed)];
    case 'stream':
      return [streamState(state, action)];
    case 'heard':
      return [{ ...state, connection: { ...state.connection, skewMs: action.skewMs ?? state.connection.skewMs } }];
    case 'connected':
      return begun({ ...beginning(state), place: action.place, nowMs: state.nowMs });
    case 'notConnected':
      return [saying(state, `${action.context}: ${action.failure.message}`, 'bad')];
    case 'copied':
      // Whether the terminal took it nobody can tell.
      return [said(state, `${action.what} was sent to the terminal's clipboard`)];
    case 'notCopied':
      return [saying(state, `${action.what}: too long for the terminal's clipboard`, 'bad')];
    case 'written':
      return [said(state, `Written to ${action.path}`)];
    case 'notWritten':
      return [notWritten(state, action)];
  }
}

function begun(state: State): Step {
  const [next, ...effects] = refreshed(state);
  return [next, ...effects, { do: 'wake', name: 'second', afterMs: SECOND_MS }];
}

/** Times on the screen go on; what is over goes. */
function second(state: State): Step {
  const { message, undo, nowMs } = state;
  const next: State = {
    ...state,
    message: message && message.untilMs <= nowMs ? null : message,
    undo: undo && undo.untilMs <= nowMs ? null : undo,
  };
  return [next, { do: 'wake', name: 'second', afterMs: SECOND_MS }];
}

/** A taller screen may show rows that were not asked for yet. */
function resized(state: State, { columns, rows }: { columns: number; rows: number }): Step {
  const next = { ...state, size: { columns, rows } };
  const [moved, ...effects] = tokens.movedBy(next, 0);
  return [moved, ...effects];
}

type AnsweredAction = Extract<Action, { on: 'answered' }>;

function answered(state: State, { question, answer }: AnsweredAction): Step {
  // Question and answer belong together, which the compiler cannot see once they are apart.
  const it = { question, answer } as Pick<AnsweredAction, 'question' | 'answer'>;
  return ANSWERED[it.question.of](state, it.question as never, it.answer as never);
}

type Taking = {
  [A in AnsweredAction as A['question']['of']]: (state: State, question: A['question'], answer: A['answer']) => Step;
};

const ANSWERED: Taking = {
  status: (state, _, status) => {
    const { per_second: perSecond, errors_per_second: errorsPerSecond } = status.requests;
    const sample: Sample = { atMs: state.nowMs, perSecond, errorsPerSecond };
    const traffic = [...state.overview.traffic, sample].slice(-SAMPLES_KEPT);
    return [{ ...state, overview: { ...state.overview, status, traffic } }];
  },
  tokens: (state, { page }, answer) => tokens.answered(state, page, answer),
  dying: (state, _, { items }) => [{ ...state, overview: { ...state.overview, dying: items } }],
  token: (state, _, answer) => [token.answered(state, answer)],
  everyToken: (state, { as }, answer) => [tokens.everyTokenCame(state, as, answer)],
  projects: (state, _, answer) => [projects.answered(state, answer)],
  usage: (state, { query }, answer) =>
    query.token_id === undefined
      ? [{ ...state, overview: { ...state.overview, usage: answer } }]
      : [token.usageCame(state, query.token_id, answer)],
  audit: (state, { query }, answer) => [feeds.auditCame(state, query, answer)],
  tokenAudit: (state, { id }, { items }) => [token.auditCame(state, id, items)],
  cache: (state, _, cache) => [{ ...state, cache: { ...state.cache, cache } }],
  purgeable: (state, { body }, count) => [previewed(state, JSON.stringify(body), { count, failure: null })],
  contexts: (state, _, all) => {
    const top = state.layers.at(-1);
    if (top?.kind !== 'contexts') return [state];
    return [
      withLayer(state, {
        ...top,
        all,
        selected: Math.max(
          0,
          all.findIndex(({ isCurrent }) => isCurrent),
        ),
      }),
    ];
  },
};

function previewed(state: State, body: string, what: { count: number | null; failure: Failure | null }): State {
  const { preview } = state.cache;
  if (!preview || JSON.stringify(preview.body) !== body) return state;
  return { ...state, cache: { ...state.cache, preview: { ...preview, ...what } } };
}

function failed(before: State, question: Question, failure: Failure): Step {
  const state = withoutAnswer(before, question, failure);
  if (connection.isOfDaemon(failure)) return connection.failed(state, failure);
  if (question.of === 'token' && failure.status === 404) return [token.gone(state, question.id)];
  if (question.of === 'purgeable' || question.of === 'contexts') return [state];
  return [saying(state, failure.message, 'bad')];
}

/** Who waited for it waits no longer. */
function withoutAnswer(state: State, question: Question, failure: Failure): State {
  switch (question.of) {
    case 'tokens':
      return tokens.failed(state, question.page);
    case 'everyToken':
      return { ...state, progress: null };
    case 'audit':
      return { ...state, audit: { ...state.audit, isReadingOlder: false } };
    case 'purgeable':
      return previewed(state, JSON.stringify(question.body), { count: null, failure });
    case 'contexts': {
      const top = state.layers.at(-1);
      return top?.kind === 'contexts' ? withLayer(state, { ...top, all: [], failure }) : state;
    }
    default:
      return state;
  }
}

/** What is shown is asked for anew, so that the change is to be seen. */
function changed(state: State, { change, outcome }: Extract<Action, { on: 'changed' }>): Step {
  const next = changing.changed(state, change, outcome);
  const { created } = outcome;
  const shown = created
    ? above(next, { kind: 'reveal', ...created, isShown: false, path: null, said: null, problem: null })
    : next;
  return refreshed(shown);
}

function refused(state: State, { change, failure }: Extract<Action, { on: 'refused' }>): Step {
  const next = changing.notChanged(state, change, failure);
  if (!connection.isOfDaemon(failure)) return [next];
  const [away, ...effects]: [State, ...Effect[]] = connection.failed(next, failure) as [State, ...Effect[]];
  return [{ ...away, message: next.message }, ...effects];
}

function streamState(state: State, { of, is, failure }: Extract<Action, { on: 'stream' }>): State {
  const stream = is === 'open' ? 'open' : 'lost';
  const heard = failure?.status === 401 ? connection.failed(state, failure)[0] : state;
  if (of === 'audit') return { ...heard, audit: { ...heard.audit, stream } };
  if (of === 'events') return { ...heard, events: { ...heard.events, stream } };
  return heard;
}

/** In the dialog of the secret, where it is about that. */
function said(state: State, words: string): State {
  const top = state.layers.at(-1);
  return top?.kind === 'reveal'
    ? withLayer(state, { ...top, said: words, path: null, problem: null })
    : saying(state, words);
}

function notWritten(state: State, { path, why }: { path: string; why: string }): State {
  const top = state.layers.at(-1);
  const words = `${path} was not written: ${why}`;
  return top?.kind === 'reveal' ? withLayer(state, { ...top, problem: words }) : saying(state, words, 'bad');
}
