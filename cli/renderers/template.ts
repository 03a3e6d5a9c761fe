/** `--template`: text with fields, such as `{{.name}}\t{{.id}}`, for each item. It evaluates nothing: a field is the only thing it has. */
import { plain, visibleLines } from '../../console/escape.js';
import { usage } from '../../console/failure.js';
import type { Renderer } from '../output.js';

/** A text, or the path of a field. The empty path is the item itself. */
type Part = string | readonly string[];

const FIELD = /^\s*\.(?:[\w-]+(?:\.[\w-]+)*)?\s*$/;
const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', '\\': '\\' };
// As in the templates of Go, so that a wrong name is noticed.
const NO_VALUE = '<no value>';

/** @throws {Failure} with exit code 2 for a template with anything else than fields in braces. */
export function templateRenderer(template: string): Renderer {
  const parts = partsOf(template);
  const rendered = (item: object) =>
    `${parts.map((part) => (typeof part === 'string' ? part : valueAt(item, part))).join('')}\n`;
  return { all: (_, items) => items.map(rendered).join(''), next: rendered };
}

function partsOf(template: string): Part[] {
  return template.split(/(\{\{.*?\}\})/s).map((part, at): Part => {
    if (at % 2 === 0) {
      if (part.includes('{{')) throw usage('--template: {{ without }}', { advice: ADVICE });
      return unescaped(part);
    }
    const inside = part.slice(2, -2);
    if (!FIELD.test(inside)) throw usage(`--template: ${part} is not a field`, { advice: ADVICE });
    return inside
      .trim()
      .split('.')
      .filter((name) => name !== '');
  });
}

const ADVICE = "Write fields as {{.name}}, for example --template '{{.id}}\\t{{.name}}'";

const unescaped = (text: string) =>
  visibleLines(text.replace(/\\([tn\\])/g, (_, letter: string) => ESCAPES[letter] ?? ''));

/** @returns an empty text for null. */
function valueAt(item: object, path: readonly string[]): string {
  let value: unknown = item;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return NO_VALUE;
    value = (value as Record<string, unknown>)[name];
  }
  return plain(value);
}
