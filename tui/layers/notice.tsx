/** A notice: sentences to read. */
import { strip, text, wrapped } from '../parts/strip.js';
import type { Notice } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import type { State } from '../state/state.js';
import { AROUND, Panel } from './panel.js';

const COLUMNS = 96;

export function NoticePanel({
  state,
  notice: { title, sentences, isPlain, scrolled },
}: {
  state: State;
  notice: Notice;
}) {
  const area = areaOf(state);
  const columns = Math.min(COLUMNS, area.columns - AROUND);
  const parts = sentences.map((sentence) =>
    wrapped(sentence, columns - 2).map((line, at) => strip(!isPlain && text(at === 0 ? '! ' : '  ', 'warning'), line)),
  );
  const lines = parts.flat();
  const shown = Math.max(1, area.rows - 2);
  const top = Math.min(parts.slice(0, scrolled).flat().length, Math.max(0, lines.length - shown));
  return (
    <Panel
      title={strip(text(title, 'title'))}
      lines={lines.slice(top, top + shown)}
      columns={columns}
      scroll={{ top, shown, of: lines.length }}
    />
  );
}
