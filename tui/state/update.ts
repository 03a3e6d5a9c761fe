/** The next state: what an action makes of one, and what is to be done for it. No clock, no daemon, no terminal. */
import * as connection from './connection.js';
import type { Action, Answered, Effect, Failure, Outcome, Place, Question, Timed } from './exchange.js';
import * as feeds from './feeds.js';
import * as filtering from './filtering.js';
import * as forms from './forms.js';
import { above } from './navigation.js';
import { completed, streamedWhole, withLacks } from './older.js';
import * as outcome from './outcome.js';
import * as projects from './projects.js';
import { refreshed, streams, woke } from './refreshing.js';
import { listRows } from './rows.js';
import { goingOn, type Reveal, type Sample, saying, type State, type Step, view, withLayer } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';
import { beginning } from './beginning.js';
import * as windows from './window.js';

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
  const heeded = connection.mayAsk(state) ? effects : effects.filter(isOfOurs);
  const wanted = streams(state);
  const isFollowed = JSON.stringify(wanted) === JSON.stringify(streams(before));
  const isAnew = action.on === 'began' || action.on === 'connected';
  return isFollowed && !isAnew
    ? [state, ...heeded]
    : [feeds.unopened(state), ...heeded, { do: 'follow', streams: wanted }];
}

/** Whether it goes without a daemon. */
const isOfOurs = (effect: Effect) => effect.do !== 'ask' || effect.question.of === 'contexts';

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
      return action.name === 'filter' ? typedOut(state) : second(state);
    case 'answered': {
      const [next, ...effects] = answered(state, action);
      const { of } = action.question;
      if (of === 'contexts') return pressedEarly(next, press);
      return [connection.answered(next, of), ...effects];
    }
    case 'failed':
      return failed(state, action.question, action.failure);
    case 'progress':
      // It may come late, after it was stopped.
      if (goingOn(state) === null) return [state];
      return [{ ...state, progress: { words: action.words, done: action.done, of: action.of } }];
    case 'changed':
      return changed(state, action);
    case 'refused':
      return refused(state, action);
    case 'streamed':
      return [feeds.streamed(state, streamedWhole(action.streamed))];
    case 'stream':
      return streamState(state, action);
    case 'heard':
      return [{ ...state, connection: { ...state.connection, skewMs: action.skewMs ?? state.connection.skewMs } }];
    case 'connected':
      return begun(saying({ ...beginning(state), place: action.place }, `Now at ${nameOf(action.place)}`, 'good'));
    case 'notConnected':
      return [saying({ ...state, goingTo: null }, `${action.context}: ${action.failure.message}`, 'bad')];
    case 'copied':
      // Whether the terminal took it nobody can tell.
      return [said(state, `${action.what} was sent to the terminal's clipboard`)];
    case 'notCopied':
      return [notDone(state, `${action.what}: too long for the terminal's clipboard`)];
    case 'written':
      return [said(state, `Written to ${action.path}`)];
    case 'notWritten':
      return [notDone(state, `${action.path} was not written: ${action.why}`)];
  }
}

/** The keys that were pressed before the list of contexts was there act now, each on what the one before it left. */
function pressedEarly(state: State, press: Press): Step {
  const top = state.layers.at(-1);
  if (top?.kind !== 'contexts') return [state];
  return top.early.reduce<Step>(
    ([before, ...effects], key) => {
      const [after, ...more] = press.key(before, key);
      return [after, ...effects, ...more];
    },
    [withLayer(state, { ...top, early: [] })],
  );
}

const nameOf = ({ context, server }: Place) => context ?? server;

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
  const next = projects.fitted({ ...state, size: { columns, rows } });
  if (view(next).screen === 'tokens') return tokens.movedBy(next, 0);
  return [{ ...next, tokens: { ...next.tokens, window: windows.move(next.tokens.window, 0, listRows(next)) } }];
}

/** Nothing was typed for a moment: what was typed holds. */
function typedOut(state: State): Step {
  const top = state.layers.at(-1);
  return top?.kind === 'dialog' ? forms.previewed(state) : filtering.settled(state);
}

type AnsweredAction = Extract<Action, { on: 'answered' }>;

function answered(state: State, { question, answer }: AnsweredAction): Step {
  // Question and answer belong together, which the compiler cannot see once they are apart.
  const { answered: it, lacks } = completed({ question, answer } as Answered);
  return ANSWERED[it.question.of](withLacks(state, lacks), it.question as never, it.answer as never);
}

type Taking = {
  [A in AnsweredAction as A['question']['of']]: (state: State, question: A['question'], answer: A['answer']) => Step;
};

const ANSWERED: Taking = {
  status: (state, _, status) => {
    const { per_second: perSecond, errors_per_second: errorsPerSecond } = status.requests;
    const sample: Sample = { atMs: state.nowMs, perSecond, errorsPerSecond };
    const isSaid = !Number.isNaN(perSecond);
    const traffic = [...state.overview.traffic, ...(isSaid ? [sample] : [])].slice(-SAMPLES_KEPT);
    return [{ ...state, overview: { ...state.overview, status, traffic } }];
  },
  tokens: (state, { page }, answer) => tokens.answered(state, page, answer),
  dying: (state, _, { items }) => [{ ...state, overview: { ...state.overview, dying: items } }],
  token: (state, _, answer) => [token.answered(state, answer)],
  everyToken: (state, _, answer) => [tokens.everyTokenCame(state, answer)],
  projects: (state, _, answer) => [projects.answered(state, answer)],
  usage: (state, { query }, answer) =>
    query.token_id === undefined
      ? [{ ...state, overview: { ...state.overview, usage: answer } }]
      : [token.usageCame(state, query.token_id, answer)],
  audit: (state, { query }, answer) => [feeds.auditCame(state, query, answer)],
  tokenAudit: (state, { id }, history) => [token.auditCame(state, id, history)],
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
  if (question.of === 'contexts') return [state];
  if (connection.isOfDaemon(failure)) return connection.failed(state, failure, question.of);
  const heard = connection.answered(state, question.of);
  if (question.of === 'tokens' && failure.status === 400) {
    const step = tokens.orderRefused(heard);
    if (step) return step;
  }
  if (question.of === 'token' && failure.status === 404) return [token.gone(heard, question.id)];
  return [question.of === 'purgeable' ? heard : saying(heard, failure.message, 'bad')];
}

/** Who waited for it waits no longer. */
function withoutAnswer(state: State, question: Question, failure: Failure): State {
  switch (question.of) {
    case 'tokens':
      return tokens.failed(state, question.page);
    case 'everyToken':
      return { ...state, progress: null, tokens: { ...state.tokens, collecting: null } };
    case 'audit':
      return { ...state, audit: { ...state.audit, isReadingOlder: false } };
    case 'purgeable':
      return previewed(state, JSON.stringify(question.body), { count: null, failure });
    case 'contexts': {
      const top = state.layers.at(-1);
      return top?.kind === 'contexts' ? withLayer(state, { ...top, all: [], early: [], failure }) : state;
    }
    default:
      return state;
  }
}

/** What is shown is asked for anew, so that the change is to be seen. */
function changed(state: State, action: Extract<Action, { on: 'changed' }>): Step {
  const next = outcome.changed(state, action.change, action.outcome);
  const { created } = action.outcome;
  return refreshed(created ? above(next, revealOf(created)) : next);
}

const revealOf = (created: NonNullable<Outcome['created']>): Reveal => ({
  kind: 'reveal',
  ...created,
  isShown: false,
  isTaken: false,
  path: null,
  isWriting: false,
  said: null,
  problem: null,
});

function refused(state: State, { change, failure }: Extract<Action, { on: 'refused' }>): Step {
  const next = outcome.notChanged(state, change, failure);
  if (!connection.isOfDaemon(failure)) return [next];
  const [away, ...effects] = connection.failed(next, failure, null);
  return [{ ...away, message: next.message }, ...effects];
}

function streamState(state: State, { of, is, failure }: Extract<Action, { on: 'stream' }>): Step {
  if (failure?.status === 401) return connection.failed(state, failure, null);
  return of === 'tokenEvents' ? [state] : feeds.streamIs(state, of, is);
}

/** In the dialog of the secret, where it is about that. */
function said(state: State, words: string): State {
  const top = state.layers.at(-1);
  return top?.kind === 'reveal'
    ? withLayer(state, { ...top, said: words, isTaken: true, path: null, isWriting: false, problem: null })
    : saying(state, words);
}

function notDone(state: State, words: string): State {
  const top = state.layers.at(-1);
  return top?.kind === 'reveal'
    ? withLayer(state, { ...top, said: null, isWriting: false, problem: words })
    : saying(state, words, 'bad');
}
