/** `--template`: text with fields, such as `{{.name}}\t{{.id}}`, for each item. It evaluates nothing: a field is the only thing it has. */
import { plain, visible, visibleLines } from '../../console/escape.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { suggestedValue } from '../help/suggest.js';
import type { Renderer } from '../output.js';

/** A text, or the path of a field. The empty path is the item itself. */
type Part = string | readonly string[];

const FIELD = /^\s*\.(?:[\w-]+(?:\.[\w-]+)*)?\s*$/;
const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', '\\': '\\' };
/** The field whose parts differ from item to item, so that none is wrong: an audit record has those of its action. */
const FREE_FORM = 'details';

/** @throws {Failure} with exit code 2 for a template with anything else than fields in braces. */
export function templateRenderer(template: string): Renderer {
  const parts = partsOf(template);
  let checked: readonly string[] = [];
  const rendered = (item: object, fields: readonly string[]) =>
    `${parts.map((part) => (typeof part === 'string' ? part : valueAt(item, part, [...fields, ...checked]))).join('')}\n`;
  return {
    all: (_, items, fields) => items.map((item) => rendered(item, fields)).join(''),
    next: rendered,
    check(fields) {
      if (fields.length === 0) return;
      checked = fields;
      const item = Object.fromEntries(fields.map((field) => [field, '']));
      for (const part of parts) if (typeof part !== 'string') valueAt(item, part, fields);
    },
  };
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

/**
 * @param fields those that the item can have.
 * @returns an empty text for null, and for a field that another item could have.
 * @throws {Failure} for a field that no item has.
 */
function valueAt(item: object, path: readonly string[], fields: readonly string[]): string {
  let value: unknown = item;
  for (const [at, name] of path.entries()) {
    if (value === null || value === undefined) return '';
    const own = typeof value === 'object' && !Array.isArray(value) ? value : {};
    if (Object.hasOwn(own, name)) value = (own as Record<string, unknown>)[name];
    else if (at === 0 ? fields.includes(name) : path[0] === FREE_FORM) return '';
    else throw noField(path.slice(0, at + 1), [...Object.keys(own), ...(at === 0 ? fields : [])]);
  }
  return plain(value);
}

function noField(path: readonly string[], known: readonly string[]): Failure {
  const [name = ''] = path.slice(-1);
  const others = [...new Set(known)];
  return new Failure(EXIT.refused, `--template: there is no field {{.${visible(path.join('.'))}}}`, {
    code: 'template',
    why: suggestedValue(name, others),
    advice: others.length === 0 ? `{{.${path.slice(0, -1).join('.')}}} has no fields` : `Fields: ${others.join(', ')}`,
  });
}
