/** The reducer: computes the next state and the effects of an action. It has no clock, no daemon and no terminal. */
import type { WireSelf } from '../../daemon/api/contract.js';
import { counted } from '../../daemon/api/formats.js';
import type { ProblemCode } from '../../daemon/api/schemas/problem.js';
import * as access from './access.js';
import * as connection from './connection.js';
import type {
  Action,
  Effect,
  Failure,
  ChangeResult,
  Target,
  DataRequest,
  MouseAction,
  TimedAction,
} from './exchange.js';
import * as exporting from './export.js';
import * as feeds from './feeds.js';
import * as filtering from './filtering.js';
import * as forms from './forms.js';
import { above, withinPermission } from './navigation.js';
import * as results from './change-result.js';
import { mayAsk } from './permitted.js';
import * as project from './project.js';
import * as projects from './projects.js';
import { modelsReceived } from './policy-forms.js';
import { refreshed, requestsOf, streams, woke } from './refreshing.js';
import { listRows } from './rows.js';
import { withCount } from './saved-views.js';
import type { Notice, Reveal } from './layers.js';
import * as secrets from './secret-search.js';
import { andThen, bulkActivity, loads, withMessage, type State, type Transition, view, withLayer } from './state.js';
import * as token from './token.js';
import * as tokens from './tokens.js';
import * as top from './top.js';
import { resetForDaemon } from './initial-state.js';
import * as windows from './window.js';

const SECOND_MS = 1_000;

/** Input handling. The table of keys imports the reducers, so it is passed in to avoid an import cycle. */
export interface Press {
  key(state: State, key: string): Transition;
  paste(state: State, text: string): Transition;
  mouse(state: State, action: MouseAction): Transition;
}

export function update(before: State, action: TimedAction, press: Press): Transition {
  const [state, ...effects] = reduced({ ...before, nowMs: action.atMs }, action, press);
  const asked = effects.filter((effect) => effect.do !== 'load' || mayAsk(state, effect.request));
  const heeded = connection.mayRequest(state) ? asked : asked.filter(needsNoDaemon);
  const wanted = streams(state);
  const isFollowed = JSON.stringify(wanted) === JSON.stringify(streams(before));
  const isAnew = action.on === 'began' || action.on === 'connected';
  return isFollowed && !isAnew
    ? [state, ...heeded]
    : [feeds.withStreamsOpening(state), ...heeded, { do: 'follow', streams: wanted }];
}

/** Whether the effect works without the daemon. */
const needsNoDaemon = (effect: Effect) => effect.do !== 'load' || isLocal(effect.request);

const isLocal = ({ of }: DataRequest) => of === 'contexts' || of === 'files';

function reduced(state: State, action: Action, press: Press): Transition {
  switch (action.on) {
    case 'began':
      return begun(state);
    case 'key':
      return press.key(state, action.key);
    case 'paste':
      return press.paste(state, action.text);
    case 'mouse':
      return press.mouse(state, action);
    case 'resized':
      return resized(state, action);
    case 'woke':
      if (action.name === 'refresh') return woke(state);
      return action.name === 'filter' ? typingPaused(state) : second(state);
    case 'loaded': {
      const [next, ...effects] = loaded(state, action);
      const { of } = action.request;
      if (of === 'contexts') return withQueuedKeys(next, press);
      if (of === 'files') return [next];
      if (of === 'top') return withRowOpened(connection.succeeded(next, of), press);
      return [connection.succeeded(next, of), ...effects];
    }
    case 'failed':
      return failed(state, action.request, action.failure);
    case 'progress':
      // Late progress after a stop is ignored.
      if (bulkActivity(state) === null) return [state];
      return [{ ...state, progress: { words: action.words, done: action.done, of: action.of } }];
    case 'changed':
      return changed(state, action);
    case 'refused':
      return refused(state, action);
    case 'streamed':
      return [feeds.streamed(state, action.streamed)];
    case 'stream':
      return streamState(state, action);
    case 'heard':
      return [{ ...state, connection: { ...state.connection, skewMs: action.skewMs ?? state.connection.skewMs } }];
    case 'connected':
      return begun(
        withMessage(
          { ...resetForDaemon(state), target: action.target, ...(action.saved && { saved: action.saved }) },
          `Switched to ${nameOf(action.target)}`,
        ),
      );
    case 'notConnected':
      return [withMessage({ ...state, switchingTo: null }, `${action.context}: ${action.failure.message}`, 'bad')];
    case 'saved':
      return [{ ...state, saved: action.saved }];
    case 'notSaved':
      return [withMessage(state, `Cannot store it, so it ends with llmp: ${action.failure.message}`, 'bad')];
    case 'copied':
      // The terminal does not report whether it accepted the text.
      return [
        withNotice(
          state,
          `${action.what} was ${action.to === 'tmux' ? "copied to tmux's buffer" : "sent to the terminal's clipboard"}`,
        ),
      ];
    case 'notCopied':
      return [withProblem(state, `${action.what}: too long for the terminal's clipboard`)];
    case 'exported':
      return [exporting.exported(state, action.list, action.count, action.isCut)];
    case 'notExported':
      return [exporting.notExported(state, action.list, action.why)];
    case 'written':
      return [withNotice(state, `Written to ${action.path}`)];
    case 'notWritten':
      return [withProblem(state, `Cannot write ${action.path}: ${action.why}`)];
  }
}

/** Handles the keys that were pressed before the list of contexts was loaded, in their order. */
function withQueuedKeys(state: State, press: Press): Transition {
  const top = state.layers.at(-1);
  if (top?.kind !== 'contexts') return [state];
  return top.queuedKeys.reduce<Transition>(
    (before, key) => andThen(before, (next) => press.key(next, key)),
    [withLayer(state, { ...top, queuedKeys: [] })],
  );
}

/** Handles Enter that was pressed before the rows of Top were loaded, unless the operator has gone elsewhere. */
function withRowOpened(state: State, press: Press): Transition {
  if (!state.top.isOpening || state.top.response === null) return [state];
  const next: State = { ...state, top: { ...state.top, isOpening: false } };
  return view(next).screen === 'top' && next.layers.length === 0 ? press.key(next, 'enter') : [next];
}

const nameOf = ({ context, server }: Target) => context ?? server;

function begun(state: State): Transition {
  const [next, ...effects] = refreshed(state);
  return [next, ...effects, { do: 'wake', name: 'second', afterMs: SECOND_MS }];
}

/** Updates the times on the screen, and removes an expired message. */
function second(state: State): Transition {
  const { message, nowMs } = state;
  const next: State = {
    ...state,
    message: message && message.untilMs <= nowMs ? null : message,
  };
  return [next, { do: 'wake', name: 'second', afterMs: SECOND_MS }];
}

/** A taller screen may show rows that were not requested yet. */
function resized(state: State, { columns, rows }: { columns: number; rows: number }): Transition {
  const next = top.movedBy(projects.fitted({ ...state, size: { columns, rows } }), 0);
  if (view(next).screen === 'tokens') return tokens.movedBy(next, 0);
  return [{ ...next, tokens: { ...next.tokens, window: windows.move(next.tokens.window, 0, listRows(next)) } }];
}

/** Typing has paused: applies the filter, or previews the purge. */
function typingPaused(state: State): Transition {
  const top = state.layers.at(-1);
  return top?.kind === 'dialog' ? forms.previewed(state) : filtering.settled(state);
}

type LoadedAction = Extract<Action, { on: 'loaded' }>;

function loaded(state: State, { request, data }: LoadedAction): Transition {
  // Request and data have matching types, which the compiler cannot infer once they are separate.
  return DATA_REDUCERS[request.of](state, request as never, data as never);
}

type DataReducers = {
  [A in LoadedAction as A['request']['of']]: (state: State, request: A['request'], data: A['data']) => Transition;
};

const DATA_REDUCERS: DataReducers = {
  self: (state, _, self) => identified(state, self),
  status: (state, _, status) => [{ ...state, overview: { ...state.overview, status } }],
  incidents: (state, _, incidents) => [{ ...state, overview: { ...state.overview, incidents } }],
  lastHour: (state, _, lastHour) => [{ ...state, overview: { ...state.overview, lastHour } }],
  tokens: (state, { page }, data) => tokens.loaded(state, page, data),
  expiring: (state, _, { items }) => [{ ...state, overview: { ...state.overview, expiring: items } }],
  costs: (state, _, costs) => [withSpending(state, 'costs', { costs })],
  spenders: (state, _, { items }) => [withSpending(state, 'spenders', { spenders: items })],
  token: (state, _, data) => [token.loaded(state, data)],
  tokensOfSecret: (state, { by }, data) => secrets.found(state, by, data),
  allTokens: (state, _, data) => [tokens.allTokensReceived(state, data)],
  projects: (state, _, data) => [projects.arranged(state, { all: data })],
  models: (state, { project: of }, models) => [modelsReceived(state, of, models)],
  usage: (state, { query }, data) =>
    query.token_id === undefined
      ? [
          query.project_id === undefined
            ? { ...state, overview: { ...state.overview, usage: data } }
            : project.usageReceived(state, query.project_id, data),
        ]
      : [token.usageReceived(state, query.token_id, data)],
  audit: (state, { query }, data) => feeds.received(state, 'audit', query, data),
  members: (state, { batch }, { items }) => [{ ...state, members: { batch, records: items } }],
  events: (state, { query }, data) => feeds.received(state, 'events', query, data),
  tokenAudit: (state, { id }, history) => [token.historyReceived(state, id, history)],
  projectAudit: (state, { id }, changes) => [project.changesReceived(state, id, changes)],
  top: (state, { query }, data) => [project.topReceived(state, query, data) ?? top.loaded(state, query, data)],
  projectCheck: (state, { project: of }, check) => [project.checkReceived(state, of, check)],
  operators: (state, _, all) => [access.received(state, 'operators', all)],
  trusts: (state, _, all) => [access.received(state, 'trusts', all)],
  cache: (state, _, cache) => [{ ...state, cache: { ...state.cache, cache } }],
  purgeable: (state, { body }, count) => [withPreview(state, JSON.stringify(body), { count, failure: null })],
  viewCount: (state, { name }, count) => [withCount(state, name, count)],
  files: (state, { folder }, entries) => [
    state.files?.folder === folder ? { ...state, files: { folder, entries } } : state,
  ],
  contexts: (before, _, all) => {
    const state = { ...before, contexts: all };
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

/** Requests what was held back until it was known who calls, and leaves a screen that is not for the caller. */
function identified(before: State, self: WireSelf): Transition {
  const state = withinPermission({ ...before, self, selfMs: before.nowMs });
  const sent = requestsOf(before).map(({ of }) => of);
  return requestsOf(state).every(({ of }) => sent.includes(of)) ? [state] : refreshed(state);
}

const withSpending = (
  state: State,
  what: keyof State['overview']['loadedMs'],
  data: Partial<State['overview']>,
): State => ({
  ...state,
  overview: { ...state.overview, ...data, loadedMs: { ...state.overview.loadedMs, [what]: state.nowMs } },
});

function withPreview(state: State, body: string, what: { count: number | null; failure: Failure | null }): State {
  const { preview } = state.cache;
  if (!preview || JSON.stringify(preview.body) !== body) return state;
  return { ...state, cache: { ...state.cache, preview: { ...preview, ...what } } };
}

const NOT_PERMITTED: ProblemCode = 'not_permitted';

/** The role of the caller has changed, or its projects. */
const reidentified = ({ code }: Failure): Effect[] => (code === NOT_PERMITTED ? loads([{ of: 'self' }]) : []);

function failed(before: State, request: DataRequest, failure: Failure): Transition {
  const state = withoutPendingRequest(before, request, failure);
  if (isLocal(request)) return [state];
  if (request.of === 'projectCheck' && failure.kind === 'refused' && failure.status !== 401) {
    // It does not mean that the daemon is unavailable.
    return [withMessage(connection.succeeded(state, request.of), failure.message, 'bad')];
  }
  if (connection.isDaemonFailure(failure)) return connection.failed(state, failure, request.of);
  const heard = connection.succeeded(state, request.of);
  if (request.of === 'token' && failure.status === 404) return [token.gone(heard, request.id)];
  return [
    request.of === 'purgeable' || request.of === 'viewCount' || request.of === 'models' || request.of === 'spenders'
      ? heard
      : withMessage(heard, failure.message, 'bad'),
    ...reidentified(failure),
  ];
}

/** Clears what was waiting for the data of a failed request. */
function withoutPendingRequest(state: State, request: DataRequest, failure: Failure): State {
  switch (request.of) {
    case 'tokens':
      return tokens.failed(state, request.page);
    case 'allTokens':
      return { ...state, progress: null, tokens: { ...state.tokens, collecting: null } };
    case 'audit':
    case 'events':
      return feeds.pageFailed(state, request.of, request.query);
    case 'purgeable':
      return withPreview(state, JSON.stringify(request.body), { count: null, failure });
    case 'viewCount':
      return withCount(state, request.name, null);
    case 'contexts': {
      const top = state.layers.at(-1);
      return top?.kind === 'contexts' ? withLayer(state, { ...top, all: [], queuedKeys: [], failure }) : state;
    }
    default:
      return state;
  }
}

/** Refreshes the screen, so that the change becomes visible. */
function changed(state: State, action: Extract<Action, { on: 'changed' }>): Transition {
  const next = results.changed(state, action.change, action.outcome);
  const { created, path, done } = action.outcome;
  if (path !== undefined) return refreshed(above(next, noticeOf(path, done)));
  return refreshed(created ? above(next, revealOf(created)) : next);
}

/** The path in full, which a message might cut. */
const noticeOf = (path: string, count: number): Notice => ({
  kind: 'notice',
  title: `Secrets of ${counted(count, 'token')}`,
  sentences: [`They are in ${path}, readable by you only. They are not shown again.`],
  scrolled: 0,
});

const revealOf = (created: NonNullable<ChangeResult['created']>): Reveal => ({
  kind: 'reveal',
  ...created,
  isShown: false,
  wasRevealed: false,
  path: null,
  isWriting: false,
  notice: null,
  problem: null,
});

function refused(state: State, { change, failure }: Extract<Action, { on: 'refused' }>): Transition {
  const next = results.changeFailed(state, change, failure);
  if (!connection.isDaemonFailure(failure)) return [next, ...reidentified(failure)];
  const [offline, ...effects] = connection.failed(next, failure, null);
  return [{ ...offline, message: next.message }, ...effects];
}

function streamState(state: State, { of, is, failure }: Extract<Action, { on: 'stream' }>): Transition {
  if (failure?.status === 401) return connection.failed(state, failure, null);
  const [next, ...effects] =
    of === 'tokenEvents' ? ([token.streamChanged(state, is)] as const) : feeds.streamChanged(state, of, is);
  return [next, ...effects, ...(failure ? reidentified(failure) : [])];
}

/** Shows a message in the dialog of the secret if that is open. */
function withNotice(state: State, words: string): State {
  const top = state.layers.at(-1);
  return top?.kind === 'reveal'
    ? withLayer(state, { ...top, notice: words, wasRevealed: true, path: null, isWriting: false, problem: null })
    : withMessage(state, words);
}

function withProblem(state: State, words: string): State {
  const top = state.layers.at(-1);
  return top?.kind === 'reveal'
    ? withLayer(state, { ...top, notice: null, isWriting: false, problem: words })
    : withMessage(state, words, 'bad');
}
