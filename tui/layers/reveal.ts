/** The secret of a new token, shown once: masked until it is asked for. */
import { relativeTime, shortId } from '../../cli/views.js';
import { keyShown } from '../keys/binding.js';
import { bindingsOn } from '../keys/press.js';
import { edited } from '../parts/editing.js';
import { count } from '../parts/figures.js';
import { joined, strip, type Strip, text, widthOf } from '../parts/strip.js';
import { projectName } from '../state/projects.js';
import { daemonNow, type Reveal, type State } from '../state/state.js';
import { wrapped } from '../parts/wrapped.js';
import type { Panel } from './panel.js';

const COLUMNS = 66;
const PREFIX = 'sk-wt-';

export function revealPanel(state: State, reveal: Reveal, columns: number): Panel {
  const room = Math.min(COLUMNS, columns - 4);
  const lines = [
    about(state, reveal),
    [],
    ...secretLines(reveal, room - 2).map((line) => strip('  ', text(line, 'strong'))),
    [],
    ...(reveal.path === null ? keys(state, room) : writing(reveal.path, room)),
    ...saidLines(reveal, room),
  ];
  return { title: strip(text('Token created · shown once', 'title')), lines, columns: room, role: 'warning' };
}

function about(state: State, { token }: Reveal): Strip {
  const project = projectName(state, token.project_id) ?? shortId(token.project_id);
  const most = token.max_requests === 0 ? 'any number of requests' : `${count(token.max_requests)} requests`;
  const until = relativeTime(token.expires_at, { now: daemonNow(state) });
  return strip(text(token.name ?? shortId(token.id), 'strong'), ` for ${project}, ${most}, expires ${until}`);
}

/** The whole of it, in as many lines as it takes: half a secret is none. */
function secretLines({ secret, isShown }: Reveal, columns: number): string[] {
  const whole = isShown ? secret.reveal() : PREFIX + '•'.repeat(Math.max(0, secret.length - PREFIX.length));
  const lines = Math.ceil(whole.length / columns);
  return Array.from({ length: lines }, (_, row) => whole.slice(row * columns, (row + 1) * columns));
}

/** What can be done with it; the last one ends it, so it stands apart. */
function keys({ look }: State, room: number): Strip[] {
  const told = bindingsOn('reveal').filter(({ footer }) => footer !== undefined);
  const all = told.map((binding): Strip => {
    const [key = ''] = binding.keys;
    return strip(text(keyShown(key, look.ascii), 'key'), ` ${binding.label}`);
  });
  const last = all.at(-1) ?? [];
  return [strip('  ', joined(all.slice(0, -1), '   ')), [], strip(' '.repeat(Math.max(0, room - widthOf(last))), last)];
}

const writing = (path: NonNullable<Reveal['path']>, room: number): Strip[] => [
  strip('  Write to: ', text('[ ', 'key'), edited(path, Math.max(8, room - 18), { hasFocus: true }), text(' ]', 'key')),
  [],
  strip(
    '  ',
    text('a new file that only you can read; ', 'faint'),
    text('enter', 'key'),
    ' writes, ',
    text('esc', 'key'),
    ' goes back',
  ),
];

function saidLines({ said, problem }: Reveal, room: number): Strip[] {
  if (problem !== null) return [[], ...wrapped(`! ${problem}`, room - 2).map((line) => strip('  ', text(line, 'bad')))];
  return said === null ? [] : [[], ...wrapped(said, room - 2).map((line) => strip('  ', text(line, 'good')))];
}
