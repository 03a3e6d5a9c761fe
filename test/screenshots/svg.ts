/** Converts a terminal frame to SVG: text as text, lines and blocks as shapes, so that they join with any font. */
import stringWidth from 'string-width';

const CELL = { width: 8.4, height: 18 };
const FONT_PX = 14;
const MARGIN = 14;
/** Height of the title bar of the window. */
const BAR = 30;

const INK = {
  back: '#1b1f27',
  bar: '#262b35',
  plain: '#d5dae3',
  faint: '#7f8896',
  31: '#f27a80',
  32: '#8fce88',
  33: '#e5bf6b',
  34: '#82aaf0',
  35: '#c792ea',
  36: '#6cc4dc',
} as const;

interface Style {
  isBold: boolean;
  isFaint: boolean;
  isUnderlined: boolean;
  isInverse: boolean;
  color: keyof typeof INK;
}

interface Run {
  text: string;
  column: number;
  width: number;
  style: Style;
}

const PLAIN: Style = { isBold: false, isFaint: false, isUnderlined: false, isInverse: false, color: 'plain' };

/** @param lines with SGR sequences. */
export function svgOf(lines: readonly string[], columns: number, title: string): string {
  const width = columns * CELL.width + 2 * MARGIN;
  const height = lines.length * CELL.height + BAR + 2 * MARGIN;
  const body = lines.flatMap((line, row) => runsOf(line).map((run) => drawn(run, row)));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${shown(width)} ${shown(height)}" role="img" aria-label="${escaped(title)}">`,
    `<rect width="100%" height="100%" rx="9" fill="${INK.back}"/>`,
    `<path d="M0 ${BAR}V9a9 9 0 0 1 9-9H${shown(width - 9)}a9 9 0 0 1 9 9V${BAR}z" fill="${INK.bar}"/>`,
    ...['#ec6a5e', '#f4bf4f', '#61c554'].map(
      (color, at) => `<circle cx="${18 + at * 18}" cy="${BAR / 2}" r="5.5" fill="${color}"/>`,
    ),
    `<text x="${shown(width / 2)}" y="${BAR / 2 + 4}" text-anchor="middle" fill="${INK.faint}" font-family="system-ui,sans-serif" font-size="12">${escaped(title)}</text>`,
    `<g font-family="ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace" font-size="${FONT_PX}">`,
    ...body.filter((it) => it !== ''),
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Adjacent characters of one style and one kind: text or drawing. */
function runsOf(line: string): Run[] {
  const runs: Run[] = [];
  let style = PLAIN;
  let column = 0;
  // eslint-disable-next-line no-control-regex
  for (const [part, codes] of line.matchAll(/\x1b\[([\d;]*)m|[^\x1b]+/g)) {
    if (codes !== undefined) {
      style = styled(style, codes);
      continue;
    }
    for (const { segment } of new Intl.Segmenter().segment(part)) {
      const width = stringWidth(segment);
      const last = runs.at(-1);
      if (last?.style === style && isDrawing(last.text) === isDrawing(segment)) {
        last.text += segment;
        last.width += width;
      } else runs.push({ text: segment, column, width, style });
      column += width;
    }
  }
  return runs;
}

function styled(before: Style, codes: string): Style {
  return codes.split(';').reduce((style: Style, code): Style => {
    const number = Number(code);
    if (number === 0) return PLAIN;
    if (number === 1) return { ...style, isBold: true };
    if (number === 2) return { ...style, isFaint: true };
    if (number === 4) return { ...style, isUnderlined: true };
    if (number === 7) return { ...style, isInverse: true };
    return number in INK ? { ...style, color: number as 31 } : style;
  }, before);
}

const isDrawing = (text: string) => /^[\u2500-\u259f\u2800-\u28ff]/.test(text);

function drawn({ text, column, width, style }: Run, row: number): string {
  const { isFaint, isInverse, color } = style;
  const x = MARGIN + column * CELL.width;
  const y = BAR + MARGIN + row * CELL.height;
  const ink = isFaint ? INK.faint : INK[color];
  const ground = isInverse ? rect(x, y, width * CELL.width, CELL.height, ink) : '';
  const fill = isInverse ? INK.back : ink;
  if (text.trim() === '') return ground;
  if (isDrawing(text)) return ground + drawing(text, x, y, fill);
  return (
    ground +
    words(text, x)
      .map((part) => written(part, y, fill, style))
      .join('')
  );
}

interface Words {
  text: string;
  x: number;
}

/** Splits text at wider gaps, because renderers collapse spaces. */
const words = (text: string, x: number): Words[] =>
  [...text.matchAll(/\S+(?: \S+)*/g)].map((match) => ({
    text: match[0],
    x: x + stringWidth(text.slice(0, match.index)) * CELL.width,
  }));

function written({ text, x }: Words, y: number, fill: string, { isBold, isUnderlined }: Style): string {
  const attributes = [
    `x="${shown(x)}" y="${shown(y + 13.5)}" fill="${fill}"`,
    `textLength="${shown(stringWidth(text) * CELL.width)}" lengthAdjust="spacingAndGlyphs"`,
    ...(isBold ? ['font-weight="bold"'] : []),
    ...(isUnderlined ? ['text-decoration="underline"'] : []),
  ];
  return `<text ${attributes.join(' ')}>${escaped(text)}</text>`;
}

/** Shapes of lines, blocks and dots. */
function drawing(text: string, x: number, y: number, fill: string): string {
  const { width: w, height: h } = CELL;
  const signs = Array.from(text);
  const blocks = signs.map((sign, at) => block(sign, x + at * w, y)).join('');
  const strokes = signs.map((sign, at) => stroke(sign, x + at * w, y, w, h)).join('');
  return [
    blocks === '' ? '' : `<path shape-rendering="crispEdges" fill="${fill}" d="${blocks}"/>`,
    strokes === '' ? '' : `<path shape-rendering="crispEdges" fill="none" stroke="${fill}" d="${strokes}"/>`,
  ].join('');
}

function stroke(sign: string, x: number, y: number, w: number, h: number): string {
  const [cx, cy] = [shown(x + w / 2), shown(y + h / 2)];
  const [left, right, top, bottom] = [shown(x), shown(x + w), shown(y), shown(y + h)];
  const paths: Record<string, string> = {
    '─': `M${left} ${cy}H${right}`,
    '│': `M${cx} ${top}V${bottom}`,
    '┌': `M${right} ${cy}H${cx}V${bottom}`,
    '┐': `M${left} ${cy}H${cx}V${bottom}`,
    '└': `M${right} ${cy}H${cx}V${top}`,
    '┘': `M${left} ${cy}H${cx}V${top}`,
  };
  return paths[sign] ?? '';
}

const box = (x: number, y: number, w: number, h: number) =>
  `M${shown(x)} ${shown(y)}h${shown(w)}v${shown(h)}h${shown(-w)}z`;

// Column and row of each dot, by its bit.
const DOTS = [
  [0, 0],
  [0, 1],
  [0, 2],
  [1, 0],
  [1, 1],
  [1, 2],
  [0, 3],
  [1, 3],
] as const;

function block(sign: string, x: number, y: number): string {
  const { width: w, height: h } = CELL;
  const code = sign.codePointAt(0) ?? 0;
  if (code >= 0x2581 && code <= 0x2588) {
    const high = ((code - 0x2580) * h) / 8;
    return box(x, y + h - high, w, high);
  }
  if (code >= 0x2589 && code <= 0x258f) return box(x, y, ((0x2590 - code) * w) / 8, h);
  if (code === 0x2590) return box(x + w / 2, y, w / 2, h);
  if (code === 0x2591) return box(x, y + h / 2 - 1, w / 2, 2);
  if (code < 0x2800 || code > 0x28ff) return '';
  return DOTS.map(([column, row], bit) =>
    (code >> bit) & 1 ? box(x + 1 + (column * w) / 2, y + 1 + (row * h) / 4, 2.4, 2.6) : '',
  ).join('');
}

const rect = (x: number, y: number, width: number, height: number, fill: string) =>
  `<rect x="${shown(x)}" y="${shown(y)}" width="${shown(width)}" height="${shown(height)}" fill="${fill}"/>`;

const shown = (value: number) => String(Math.round(value * 100) / 100);

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => ESCAPES[sign] ?? sign);
