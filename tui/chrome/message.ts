/** The line above the footer: what is typed, what goes on, what happened, what is wrong; and at its right how much traffic there is. */
import { keyShown } from '../keys/binding.js';
import { BINDINGS } from '../keys/press.js';
import { bar } from '../parts/charts.js';
import { edited } from '../parts/editing.js';
import { clockTime, exact, rate, span } from '../parts/figures.js';
import type { Role } from '../parts/roles.js';
import { between, cut, fitted, type Piece, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { SKEW_TOLD_MS } from '../state/connection.js';
import { NOT_SAID } from '../state/older.js';
import { isStoppable, layer, type Message, type Prompt, type State } from '../state/state.js';

const TONES: Record<Message['tone'], Role> = { good: 'good', plain: 'plain', bad: 'bad' };

export function messageLine(state: State): Strip {
  const { columns } = state.size;
  const top = layer(state);
  if (top?.kind === 'prompt') return prompt(top, columns);
  return between(strip(' ', said(state)), traffic(state), columns);
}

function said(state: State): Strip {
  if (state.progress) return progress(state.progress, isStoppable(state));
  if (state.message) return strip(text(state.message.words, TONES[state.message.tone]), undo(state, ' '));
  return awaited(state) ?? banner(state) ?? (state.undo ? undo(state, '') : (older(state) ?? skew(state)));
}

/** A change is answered at once. Where it is not, nobody knows yet whether it was made. */
const AWAITED_MS = 2_000;

function awaited({ underWay: [first], nowMs }: State): Strip | null {
  if (!first || nowMs - first.sentMs < AWAITED_MS) return null;
  return strip(text(`! a change was sent ${span(nowMs - first.sentMs)} ago and is not answered yet`, 'warning'));
}

/** What the daemon says, or that it says nothing, and from when that is what is shown. */
function banner({ connection, nowMs, place, size: { columns } }: State): Strip | null {
  const { is, failure, retryMs, answeredMs } = connection;
  const again = retryMs === null ? '' : ` · retry in ${span(retryMs - nowMs)}`;
  const age =
    answeredMs === null
      ? ' · nothing known yet'
      : ` · data from ${clockTime(answeredMs)}, ${span(nowMs - answeredMs)} old`;
  const why = failure?.message ?? '';
  switch (is) {
    case 'offline':
      return told(text(`! ${why}`, 'bad'), `${again}${age}`, columns);
    case 'stale':
      if (failure === null) return told(text('! the daemon does not answer', 'warning'), age, columns);
      return told(text(`! the daemon refuses: ${failure.status ?? ''} ${why}`, 'warning'), `${again}${age}`, columns);
    case 'denied':
      return strip(text('! the management token was refused', 'bad'), ` · ${keyOf('refresh')} asks again${age}`);
    case 'connecting':
      return strip(`connecting to ${place.server} …`);
    case 'live':
      return null;
  }
}

/** Where it is narrow the reason is cut, not what is known of the time. */
const told = (why: Piece, times: string, columns: number): Strip =>
  strip(cut([why], Math.max(24, columns - 2 - text(times).width)), times);

/** It is older than this program, which shows `—` for what it does not say. */
function older({ lacking, overview: { status } }: State): Strip | null {
  if (lacking.length === 0) return null;
  const release =
    status && status.version !== NOT_SAID ? `is llmp ${status.version}, an older release` : 'is of an older release';
  return strip(text(`! the daemon ${release}: what it does not say is —`, 'warning'));
}

function skew({ connection: { skewMs } }: State): Strip {
  if (skewMs === null || Math.abs(skewMs) < SKEW_TOLD_MS) return [];
  const direction = skewMs > 0 ? 'ahead of' : 'behind';
  return strip(text(`! the daemon's clock is ${span(Math.abs(skewMs))} ${direction} this one`, 'warning'));
}

function undo({ undo: last, nowMs }: State, gap: string): Strip {
  if (!last) return [];
  return strip(gap, text(keyOf('undo'), 'key'), ` undo (${span(last.untilMs - nowMs)})`);
}

function keyOf(label: string): string {
  const key = BINDINGS.find((binding) => binding.label === label)?.keys[0];
  return key === undefined ? '' : keyShown(key, true);
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
  // The room is for what is wrong.
  if (!status || is !== 'live') return [];
  const { per_second: perSecond, errors_per_second: errors } = status.requests;
  return strip(
    text('req ', 'faint'),
    `${rate(perSecond)}/s`,
    size.columns >= 64 && strip(text('  errors ', 'faint'), text(`${rate(errors)}/s`, errors > 0 ? 'bad' : 'plain')),
    ' ',
  );
}

function prompt({ line, problem }: Prompt, columns: number): Strip {
  const head = strip(' ', text('/', 'key'), ' ');
  const right = problem === null ? [] : strip(text(`! ${problem}`, 'warning'), ' ');
  const room = Math.max(Math.floor(columns / 2), columns - widthOf(right) - 2) - widthOf(head);
  return between(strip(head, fitted(edited(line, room, { hasFocus: true }), room)), right, columns);
}
