/** Formats of output that need a library, or a program of the user: YAML, jq and templates. They are loaded only when used. */
import { usage } from '../../console/failure.js';
import type { Globals } from '../globals.js';
import type { Shell } from '../shell.js';
import type { Renderer } from './renderer.js';

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
  return format === 'yaml' ? (await import('./yaml.js')).yamlRenderer() : undefined;
}
