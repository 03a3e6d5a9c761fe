/** The first line: where one is, what is looked at, and whether it is what it was a moment ago. */
import { clockTime, span } from '../parts/figures.js';
import { isRole, type Role } from '../parts/roles.js';
import { between, joined, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { filterOf } from '../state/navigation.js';
import { nameOf } from '../state/changing.js';
import { staleSince } from '../state/connection.js';
import { type Connection, type State, type View } from '../state/state.js';

const CONNECTIONS: Record<Connection['is'], readonly [sign: string, role: Role]> = {
  connecting: ['…', 'plain'],
  live: ['●', 'good'],
  stale: ['▲', 'warning'],
  offline: ['✗', 'bad'],
  denied: ['✗', 'bad'],
};

export function header(state: State): Strip {
  const { columns } = state.size;
  const right = strip(connection(state), ' ');
  const room = columns - widthOf(right) - 2;
  const left = fitting(state, room);
  return between(left, right, columns);
}

function connection({ connection: it, isPaused, nowMs }: State): Strip {
  const [sign, role] = CONNECTIONS[it.is];
  const sinceMs = it.is === 'stale' ? staleSince(it) : null;
  const age = sinceMs === null ? '' : ` ${span(nowMs - sinceMs)}`;
  return strip(
    isPaused && text('‖ paused  ', 'warning'),
    text(`${sign} ${it.is}${age}`, role),
    text(` ${clockTime(nowMs)}`),
  );
}

/** Where it is narrow the address goes first, then our own name; never that a context is protected. */
function fitting(state: State, room: number): Strip {
  const { place } = state;
  const name = strip(text('llmp', 'strong'));
  const context = place.context === null ? [] : strip(text(place.context, contextRole(place.color)));
  const marks = strip(
    place.isProtected && text('▌PROTECTED▐', 'alarm'),
    place.isProtected && place.isReadonly && ' ',
    place.isReadonly && text('▌READ-ONLY▐', 'warning'),
  );
  const where = joined(
    [context, marks].filter((it) => it.length > 0),
    ' ',
  );
  const server = strip(text(place.server, 'faint'));
  const trail = breadcrumb(state);
  const tries = [
    [name, where, server, trail],
    [name, where, trail],
    [where, trail],
  ].map((parts) =>
    strip(
      ' ',
      joined(
        parts.filter((it) => it.length > 0),
        '  ',
      ),
    ),
  );
  return tries.find((line) => widthOf(line) <= room) ?? tries.at(where.length > 0 ? -1 : -2) ?? [];
}

const contextRole = (color: string | null): Role => (color !== null && isRole(color) ? color : 'strong');

function breadcrumb(state: State): Strip {
  const steps = state.views.map((view) => text(nameOfView(state, view)));
  const filter = filterOf(state) ?? '';
  return joined(
    [...steps, ...(filter === '' ? [] : [text(filter, 'accent')])].map((step) => [step]),
    ' › ',
  );
}

function nameOfView(state: State, view: View): string {
  if (view.screen !== 'token') return view.screen;
  const token = state.token?.token;
  return token?.id === view.id ? nameOf(token) : view.id.slice(0, 8);
}
