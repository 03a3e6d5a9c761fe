/** The first line: the daemon, the current view, and the state of the connection. */
import { matchShown } from '../../console/columns/access.js';
import { shortId } from '../../console/columns/cell-text.js';
import { duration } from '../../daemon/api/formats.js';
import { clockTime } from '../parts/figures.js';
import { Ends, GAP } from '../parts/drawing.js';
import { isRole, type Role } from '../parts/roles.js';
import { cut, joined, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { projectName } from '../state/projects.js';
import { filterOf } from '../state/navigation.js';
import { nameOf } from '../state/changes.js';
import { staleSince } from '../state/connection.js';
import { type ConnectionState, type State, type View } from '../state/state.js';

const CONNECTIONS: Record<ConnectionState['is'], readonly [sign: string, role: Role]> = {
  connecting: ['…', 'plain'],
  live: ['●', 'good'],
  stale: ['▲', 'warning'],
  offline: ['✗', 'bad'],
  denied: ['✗', 'bad'],
};

export function Header({ state }: { state: State }) {
  const right = strip(connection(state), ' ');
  return <Ends left={fitting(state, state.size.columns - widthOf(right) - GAP)} right={right} />;
}

function connection({ connection: it, isPaused, nowMs }: State): Strip {
  const [sign, role] = CONNECTIONS[it.is];
  const sinceMs = it.is === 'stale' ? staleSince(it) : null;
  const age = sinceMs === null ? '' : ` ${duration(nowMs - sinceMs)}`;
  return strip(
    isPaused && text('‖ paused  ', 'warning'),
    text(`${sign} ${it.is}${age}`, role),
    text(` ${clockTime(nowMs)}`),
  );
}

/** On a narrow screen the address is dropped first, then the name `llmp`, but never the mark of a protected context or who is logged in. */
function fitting(state: State, room: number): Strip {
  const { target } = state;
  const name = strip(text('llmp', 'strong'));
  const context = target.context === null ? [] : strip(text(target.context, contextRole(target.color)));
  const marks = strip(
    target.isProtected && text('▌PROTECTED▐', 'alarm'),
    target.isProtected && target.isReadonly && ' ',
    target.isReadonly && text('▌READ-ONLY▐', 'warning'),
  );
  const where = joined(
    [context, marks].filter((it) => it.length > 0),
    ' ',
  );
  const server = strip(text(target.server, 'faint'));
  const trail = breadcrumb(state);
  const [who, whoShort] = [whoShown(state, WHO_COLUMNS), whoShown(state, SHORT_WHO_COLUMNS)];
  const tries = [
    [name, where, who, server, trail],
    [name, where, who, trail],
    [where, who, trail],
    [where, whoShort, trail],
  ].map((parts) =>
    strip(
      ' ',
      joined(
        parts.filter((it) => it.length > 0),
        '  ',
      ),
    ),
  );
  const hasPlace = where.length > 0 || who.length > 0;
  return tries.find((line) => widthOf(line) <= room) ?? (hasPlace ? tries.at(-1) : tries.at(1)) ?? [];
}

/** The most for the name of who is logged in. */
const WHO_COLUMNS = 30;
const SHORT_WHO_COLUMNS = 10;

/** The name and the role of who is logged in; nothing for the holder of the management token. */
function whoShown({ self }: State, columns: number): Strip {
  if (self?.role == null) return [];
  return strip(cut(strip(text(self.name ?? self.actor, 'accent')), columns), text(` (${self.role})`, 'faint'));
}

const contextRole = (color: string | null): Role => (color !== null && isRole(color) ? color : 'strong');

const UUID = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/g;

function breadcrumb(state: State): Strip {
  const steps = state.views.map((view) => text(nameOfView(state, view)));
  // A whole ID would leave no room for the rest.
  const filter = (filterOf(state) ?? '').replaceAll(UUID, (id) => `${shortId(id)}…`);
  return joined(
    [...steps, ...(filter === '' ? [] : [text(filter, 'accent')])].map((step) => [step]),
    ' › ',
  );
}

function nameOfView(state: State, view: View): string {
  if (!('id' in view)) return view.screen;
  if (view.screen === 'project') return projectName(state, view.id) ?? view.id.slice(0, 8);
  const { operators, trusts } = state.access;
  if (view.screen === 'operator') return operators?.find(({ id }) => id === view.id)?.name ?? view.id.slice(0, 8);
  const trust = view.screen === 'trust' && trusts?.find(({ id }) => id === view.id);
  if (trust) return matchShown(trust.match);
  const token = state.token?.token;
  return token?.id === view.id ? nameOf(token) : view.id.slice(0, 8);
}
