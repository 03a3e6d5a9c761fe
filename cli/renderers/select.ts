/** Formats of output that need a library, or a program of the user: YAML, jq and templates. They are loaded only when used. */
import { escapedQuotes, visibleJson } from '../../console/escape.js';
import { usage } from '../../console/failure.js';
import type { Globals } from '../globals.js';
import type { Shell } from '../shell.js';
import type { Renderer } from '../output.js';

/**
 * The renderer for the output that the command line requests; undefined if it requests a table, JSON, CSV or IDs.
 *
 * It is created before the command runs: an invalid expression must not be noticed only after a change was made, or a secret issued.
 *
 * @throws {Failure} with exit code 2 for an invalid expression or template.
 */
export async function rendererFor(
  globals: Globals,
  format: string,
  shell: Pick<Shell, 'interruptible'>,
): Promise<Renderer | undefined> {
  const { jq, template } = globals;
  if (jq !== undefined || template !== undefined) {
    const option = jq === undefined ? '--template' : '--jq';
    if (jq !== undefined && template !== undefined) {
      throw usage('--jq and --template exclude each other', { advice: 'Use one of them' });
    }
    if (globals.output !== undefined && globals.output !== 'json') {
      throw usage(`${option} and -o ${globals.output} exclude each other`, { advice: 'Use one of them' });
    }
  }
  if (jq !== undefined) return (await import('./jq.js')).jqRenderer(jq, shell);
  if (template !== undefined) return (await import('./template.js')).templateRenderer(template);
  return format === 'yaml' ? yamlRenderer() : undefined;
}

/** `-o yaml`: the value that `-o json` prints, as YAML 1.2. A stream has a document for each item. */
async function yamlRenderer(): Promise<Renderer> {
  const { Document, visit } = await import('yaml');
  const yamlOf = (value: unknown): string => {
    const document = new Document(value, { aliasDuplicateObjects: false });
    visit(document, {
      Scalar(_, node) {
        const { value: text } = node;
        // Only a quoted text can contain escape sequences, which are the same as in JSON.
        if (typeof text === 'string' && visibleJson(text) !== JSON.stringify(text)) node.type = 'QUOTE_DOUBLE';
      },
    });
    // No text is folded, so that a value is on one line. The library leaves some characters that change the writing direction.
    return escapedQuotes(document.toString({ lineWidth: 0, blockQuote: false }));
  };
  return { all: yamlOf, next: (item) => `---\n${yamlOf(item)}` };
}
