/** The line above the footer: input, progress, messages and warnings; at its right the current traffic. */
import { keyOf } from '../keys/press.js';
import { bar } from '../parts/charts.js';
import { edited } from '../parts/editing.js';
import { duration, exact, rate } from '../../daemon/api/formats.js';
import { Ends, GAP } from '../parts/drawing.js';
import { clockTime } from '../parts/figures.js';
import type { Role } from '../parts/roles.js';
import { cut, type Piece, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { hasSessionEnded, SKEW_WARNING_MS, whyDenied } from '../state/connection.js';
import { nextReversal, UNDO_AT_ONCE_MS } from '../state/undo.js';
import type { Prompt } from '../state/layers.js';
import { may } from '../state/permitted.js';
import { isStoppable, layer, type Message, type State, view } from '../state/state.js';

const TONES: Record<Message['tone'], Role> = { good: 'good', plain: 'plain', bad: 'bad' };

export function MessageLine({ state }: { state: State }) {
  const { columns } = state.size;
  const top = layer(state);
  if (top?.kind === 'prompt') return <InputLine sign="/" line={top.line} problem={top.problem} columns={columns} />;
  // Its problem is in the box above it, which has more room.
  if (top?.kind === 'command') return <InputLine sign=":" line={top.line} problem={null} columns={columns} />;
  const words = strip(' ', messageText(state));
  const right = traffic(state);
  // The message is more important than the traffic, which the overview shows too.
  const hasRoom = state.message === null || widthOf(words) + GAP + widthOf(right) <= columns;
  return <Ends left={words} right={hasRoom ? right : []} />;
}

function messageText(state: State): Strip {
  if (state.progress) return progress(state.progress, isStoppable(state));
  if (state.message) return strip(text(state.message.words, TONES[state.message.tone]), undo(state, ' '));
  return pendingWarning(state) ?? banner(state) ?? nonEmpty(undo(state, '')) ?? skew(state);
}

const nonEmpty = (it: Strip) => (it.length > 0 ? it : null);

/** A change without a response after this time is reported, because its result is unknown. */
const PENDING_WARNING_MS = 2_000;

function pendingWarning({ pendingChanges, layers, nowMs }: State): Strip | null {
  // A form that waits for the response says so itself.
  const isShown = (change: unknown) => layers.some((one) => one.kind === 'dialog' && one.awaited === change);
  const first = pendingChanges.find(({ change }) => !isShown(change));
  if (!first || nowMs - first.sentMs < PENDING_WARNING_MS) return null;
  return strip(text(`! a change sent ${duration(nowMs - first.sentMs)} ago is not confirmed yet`, 'warning'));
}

/** The state of the connection, when it is not live, and the age of the data. */
function banner(state: State): Strip | null {
  const {
    connection,
    nowMs,
    target,
    size: { columns },
  } = state;
  const { is, failure, retryMs, respondedMs } = connection;
  const again = retryMs === null ? '' : ` · retry in ${duration(retryMs - nowMs)}`;
  const age =
    respondedMs === null
      ? ' · no data yet'
      : ` · data from ${clockTime(respondedMs)}, ${duration(nowMs - respondedMs)} old`;
  const why = failure?.message ?? '';
  switch (is) {
    case 'offline':
      return reasonAndTimes(text(`! ${why}`, 'bad'), `${again}${age}`, columns);
    case 'stale':
      if (failure === null) return reasonAndTimes(text('! the daemon is not responding', 'warning'), age, columns);
      return reasonAndTimes(
        text(`! ${failure.status === null ? '' : `the daemon returned ${failure.status}: `}${why}`, 'warning'),
        `${again}${age}`,
        columns,
      );
    case 'denied':
      return strip(text(`! ${whyDenied(state)}`, 'bad'), ` · ${afterDenied(state)}`, hasSessionEnded(state) ? '' : age);
    case 'connecting':
      return strip(`connecting to ${target.server} …`);
    case 'live':
      return null;
  }
}

/** What the operator can do. A new session has a secret of its own, which is read from the context. */
function afterDenied(state: State): string {
  const key = keyOf(state, 'global.refresh');
  if (!hasSessionEnded(state)) return `${key} retries`;
  return state.target.context === null ? 'run `llmp login`, and start again' : `run \`llmp login\`, then press ${key}`;
}

/** On a narrow screen the reason is cut, not the times. */
const reasonAndTimes = (why: Piece, times: string, columns: number): Strip =>
  strip(cut([why], Math.max(24, columns - 2 - text(times).width)), times);

function skew({ connection: { skewMs } }: State): Strip {
  if (skewMs === null || Math.abs(skewMs) < SKEW_WARNING_MS) return [];
  const direction = skewMs > 0 ? 'ahead of' : 'behind';
  return strip(text(`! the daemon's clock is ${duration(Math.abs(skewMs))} ${direction} this one`, 'warning'));
}

/** What `u` undoes, for as long as it does so without a question. */
function undo(state: State, gap: string): Strip {
  // There the key undoes what is under the cursor.
  if (view(state).screen === 'audit' || !may(state, 'undoBatch')) return [];
  const last = nextReversal(state, 'undo');
  const leftMs = last ? last.madeMs + UNDO_AT_ONCE_MS - state.nowMs : 0;
  if (leftMs <= 0) return [];
  return strip(gap, text(keyOf(state, 'global.undo'), 'key'), ` undo (${duration(leftMs)})`);
}

const PROGRESS_COLUMNS = 20;

function progress({ words, done, of }: NonNullable<State['progress']>, isStoppable: boolean): Strip {
  const share = of === 0 ? 0 : done / of;
  return strip(
    `${words} `,
    bar(share, PROGRESS_COLUMNS, 'accent'),
    ` ${exact(done)}/${exact(of)}`,
    ...(isStoppable ? ['  ', text('esc', 'key'), ' stop'] : []),
  );
}

function traffic({ overview: { status }, connection: { is }, size }: State): Strip {
  // Leave the room for the error.
  if (!status?.requests || is !== 'live') return [];
  const { per_second: perSecond, errors_per_second: errors } = status.requests;
  return strip(
    text('req ', 'faint'),
    `${rate(perSecond)}/s`,
    size.columns >= 64 && strip(text('  failures ', 'faint'), text(`${rate(errors)}/s`, errors > 0 ? 'bad' : 'plain')),
    ' ',
  );
}

interface InputLineProps extends Pick<Prompt, 'line' | 'problem'> {
  sign: string;
  columns: number;
}

function InputLine({ sign, line, problem, columns }: InputLineProps) {
  const head = strip(' ', text(sign, 'key'), ' ');
  const right = problem === null ? [] : strip(text(`! ${problem}`, 'warning'), ' ');
  const room = Math.max(Math.floor(columns / 2), columns - widthOf(right) - 2) - widthOf(head);
  return <Ends left={strip(head, edited(line, room, { hasFocus: true }))} right={right} />;
}
