/** A notice: sentences to read. */
import type { Area } from '../parts/list.js';
import { strip, text } from '../parts/strip.js';
import { wrapped } from '../parts/wrapped.js';
import type { Notice } from '../state/layers.js';
import type { Panel } from './panel.js';

const COLUMNS = 96;

export function noticePanel({ title, sentences, scrolled }: Notice, area: Area): Panel {
  const columns = Math.min(COLUMNS, area.columns - 4);
  const parts = sentences.map((sentence) =>
    wrapped(sentence, columns - 2).map((line, at) => strip(text(at === 0 ? '! ' : '  ', 'warning'), line)),
  );
  const lines = parts.flat();
  const shown = Math.max(1, area.rows - 2);
  const top = Math.min(parts.slice(0, scrolled).flat().length, Math.max(0, lines.length - shown));
  return {
    title: strip(text(title, 'title')),
    lines: lines.slice(top, top + shown),
    columns,
    scroll: { top, shown, of: lines.length },
  };
}
