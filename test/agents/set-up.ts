/** How a person sets an agent up, as its page in docs/clients says: files in the home directory, and lines for the shell. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const PAGES = resolve(import.meta.dirname, '../../../docs/clients');

/** The address of the daemon on the pages. */
const ADDRESS = 'http://127.0.0.1:8080';

export interface SetUp {
  /** Contents of files, by their path in the home directory. */
  files: Readonly<Record<string, string>>;
  /** Lines for a shell whose variable `TOKEN` is the token; it is not exported. */
  script: string;
}

/**
 * The blocks of a page after `<!-- file NAME: PATH -->` and `<!-- runs: NAME -->`.
 *
 * @param origin replaces the address on the page.
 */
export function setUpOn(page: string, name: string, origin: string): SetUp {
  const text = readFileSync(join(PAGES, page), 'utf8').replaceAll(ADDRESS, origin);
  const script = new RegExp(`^<!-- runs: ${name} -->\n\n\`\`\`sh\n([^]*?)^\`\`\``, 'm').exec(text)?.[1];
  if (script === undefined) throw new Error(`${page} has no block that runs ${name}`);
  const files = text.matchAll(new RegExp(`^<!-- file ${name}: (\\S+) -->\n\n\`\`\`\\w+\n([^]*?)^\`\`\``, 'gm'));
  return { files: Object.fromEntries([...files].map(([, path = '', content = '']) => [path, content])), script };
}
