/** Writes the table of docs/clients/README.md that says what a refusal looks like for each family of clients. */
import { Refusal, type RefusalKind } from '../core/refusal.js';
import { type Family, PROGRAMS, SDKS, UNKNOWN } from './client-families.js';
import { statusFor } from './problems.js';

const BEGIN = '<!-- Written by `npm run docs` from daemon/http/client-families.ts: do not edit it here. -->';
const END = '<!-- The end of what `npm run docs` writes. -->';

const REFUSALS: readonly (readonly [title: string, kind: RefusalKind])[] = [
  ['Token refused', 'unauthorized'],
  ['Project inactive', 'project_inactive'],
  ['Cap reached', 'request_limit_reached'],
  ["Provider's key refused", 'upstream_key_rejected'],
];

/** @returns the page with the current table. @throws if the page has no place for it. */
export function withClientFamilies(page: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error('docs/clients/README.md has no place for the table of clients');
  return `${page.slice(0, from)}${BEGIN}\n\n${aligned(rows())}\n\n${page.slice(to)}`;
}

function rows(): readonly (readonly string[])[] {
  const families = [...PROGRAMS, ...SDKS, UNKNOWN];
  return [
    ['Client', 'Recognised by', 'Format', ...REFUSALS.map(([title]) => title), 'Notes'],
    ...families.map((family) => [
      family.name,
      signsOf(family),
      `_${family.format}_`,
      ...REFUSALS.map(([, kind]) => String(statusFor(new Refusal(kind, ''), family))),
      family.note,
    ]),
  ];
}

function signsOf({ headers = [], userAgents = [] }: Family): string {
  const agents = userAgents.map((name) => `\`${name}*\``);
  return [
    ...headers.map((name) => `header \`${name}\``),
    ...(agents.length > 0 ? [`\`User-Agent\` with ${agents.join(', ')}`] : []),
  ].join(', or ');
}

/** A table as prettier writes it. */
function aligned(cells: readonly (readonly string[])[]): string {
  const [head = []] = cells;
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`;
  const [title = [], ...rest] = cells;
  return [line(title), line(widths.map((width) => '-'.repeat(width))), ...rest.map(line)].join('\n');
}
