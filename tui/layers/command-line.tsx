/** The box above the command line: what is wrong with it, and what it can become. */
import { Box } from 'ink';
import { keyShown } from '../keys/binding.js';
import { type Candidate, candidates } from '../keys/command-line/candidates.js';
import { choiceBlocks, hanging } from '../parts/choice.js';
import { Lines } from '../parts/drawing.js';
import { Pane } from '../parts/pane.js';
import { fitted, strip, type Strip, text, wrapped } from '../parts/strip.js';
import type { CommandLine } from '../state/layers.js';
import { areaOf } from '../state/rows.js';
import type { State } from '../state/state.js';

const COLUMNS = 96;
const MAX_ROWS = 12;
const NAME_COLUMNS = 22;
const KEY_COLUMNS = 9;
/** The mark before the selected entry. */
const MARK_COLUMNS = 2;

export function Candidates({ state, command: top }: { state: State; command: CommandLine }) {
  const area = areaOf(state);
  const columns = Math.min(COLUMNS, area.columns);
  const problem = top.problem === null ? [] : problemLines(top.problem, columns - 2);
  const { options } = candidates(state, top);
  const rows = Math.max(0, Math.min(MAX_ROWS, area.rows - 3 - problem.length));
  const blocks = options.map((candidate) => entry(state, candidate, columns - 2 - MARK_COLUMNS));
  const whole = blocks.reduce((sum, { length }) => sum + length, 0);
  const entries = choiceBlocks(blocks, top.selected, columns - 2, Math.min(rows, whole));
  const none = options.length === 0 && problem.length === 0 ? [strip(text('  no completion', 'faint'))] : [];
  const lines = [...problem.slice(0, Math.max(1, area.rows - 3)), ...entries, ...none];
  const foot = options.length === 0 ? [] : strip(`${Math.min(top.selected + 1, options.length)} of ${options.length}`);
  return (
    <Box position="absolute" width={columns} height="100%" alignItems="flex-end">
      <Pane role="plain" foot={foot}>
        <Lines of={lines} />
      </Pane>
    </Box>
  );
}

const problemLines = (problem: string, columns: number): Strip[] =>
  wrapped(problem, columns - 3).map((line, at) => strip(text(at === 0 ? '! ' : '  ', 'bad'), text(line, 'bad')));

/** No description is cut: what does not fit goes on in the next line. */
function entry(state: State, candidate: Candidate, columns: number): Strip[] {
  const described = (head: Strip, what: string) =>
    hanging(strip(head, ' '), what, columns, (line) => [text(line, 'faint')]);
  switch (candidate.kind) {
    case 'command': {
      const { name, aliases, argument, meaning } = candidate.command;
      const names = strip(text(name, 'strong'), argument !== null && text(` ${argument}`, 'faint'));
      return described(strip(fitted(names, NAME_COLUMNS), ' ', fitted(shortcut(aliases), KEY_COLUMNS)), meaning);
    }
    case 'action': {
      const { binding } = candidate;
      const why = binding.whyDisabled?.(state) ?? null;
      const keys = binding.keys.map((key) => keyShown(key, state.look.ascii)).slice(0, 3);
      const head = strip(
        fitted([text(binding.label, why === null ? 'plain' : 'faint')], NAME_COLUMNS),
        ' ',
        fitted([text(keys.join(' '), why === null ? 'key' : 'faint')], KEY_COLUMNS),
      );
      return described(head, why === null ? binding.meaning : `${binding.meaning} (${why})`);
    }
    case 'argument':
      return described(fitted([text(candidate.insert)], NAME_COLUMNS), candidate.what);
  }
}

const shortcut = (aliases: readonly string[]): Strip =>
  aliases[0] === undefined ? [] : [text(`:${aliases[0]}`, 'key')];
