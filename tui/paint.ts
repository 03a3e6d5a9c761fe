/** Paints a tree that Ink has laid out: the lines of the screen, from top to bottom. */
import type { DOMElement } from 'ink';
import { drawingOf } from './parts/drawing.js';
import { asciiOf } from './parts/ascii.js';
import type { Styles } from './parts/roles.js';
import { fitted, over, type Strip } from './parts/strip.js';

interface PaintOptions {
  size: { columns: number; rows: number };
  styles: Styles;
  ascii: boolean;
}

/** An area of the screen, in columns and rows from its upper left corner. Right and bottom are outside. */
interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function paint(root: DOMElement, { size: { columns, rows }, styles, ascii }: PaintOptions): string[] {
  const lines = Array.from({ length: rows }, (): Strip => []);
  paintBox(lines, root, { left: 0, top: 0, right: columns, bottom: rows }, 0, 0);
  return lines.map((line) => painted(line, styles, ascii));
}

/** A box is painted after those before it, over them. What is outside its parent is not painted. */
function paintBox(lines: Strip[], box: DOMElement, within: Bounds, x: number, y: number): void {
  const { yogaNode } = box;
  if (!yogaNode) return;
  const left = x + yogaNode.getComputedLeft();
  const top = y + yogaNode.getComputedTop();
  const [columns, rows] = [yogaNode.getComputedWidth(), yogaNode.getComputedHeight()];
  const inside: Bounds = {
    left: Math.max(within.left, left),
    top: Math.max(within.top, top),
    right: Math.min(within.right, left + columns),
    bottom: Math.min(within.bottom, top + rows),
  };
  if (inside.right <= inside.left || inside.bottom <= inside.top) return;
  const drawn = drawingOf(box)?.(inside.right - left, rows);
  drawn?.forEach((line, row) => {
    const below = lines[top + row];
    if (!below || top + row < inside.top || top + row >= inside.bottom) return;
    lines[top + row] = over(below, fitted(line, inside.right - left), left);
  });
  for (const child of box.childNodes) if (child.nodeName === 'ink-box') paintBox(lines, child, inside, left, top);
}

/** Adds SGR sequences, and converts to ASCII of the same width if needed. */
function painted(line: Strip, styles: Styles, ascii: boolean): string {
  let out = '';
  let now = '';
  for (const { text, role } of line) {
    const style = styles[role];
    if (style !== now) out += (now === '' ? '' : '\x1b[0m') + (style === '' ? '' : `\x1b[${style}m`);
    now = style;
    out += ascii ? asciiOf(text) : text;
  }
  return now === '' ? out : `${out}\x1b[0m`;
}
