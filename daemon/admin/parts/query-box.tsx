/** The query box of a list, and the place of what is wrong in it. */
import { keysOf } from '../../../console/query/keys.js';
import type { FilteredScreen, FilterProblem } from '../../../console/query/types.js';
import { capitalized, escapeBidi } from './formats.js';

export const MAX_LINE_LENGTH = 500;

interface QueryLine {
  line: string;
  /** What is wrong with it, and where. */
  problem: FilterProblem | null;
}

export function QueryBox({ box: { line, problem }, placeholder }: { box: QueryLine; placeholder: string }) {
  return (
    <div className="field query">
      <label htmlFor="field-q">Query</label>
      <input
        type="search"
        id="field-q"
        name="q"
        defaultValue={line}
        maxLength={MAX_LINE_LENGTH}
        spellCheck={false}
        autoCapitalize="none"
        placeholder={placeholder}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? 'query-problem' : undefined}
      />
    </div>
  );
}

/** Below the fields, because it can be long. */
export function QueryProblem({ box: { line, problem } }: { box: QueryLine }) {
  if (problem === null) return null;
  return (
    <div className="notice bad place" id="query-problem" role="alert">
      <Place line={line} problem={problem} />
      <p>{`Character ${problem.at + 1}: ${capitalized(problem.message)}.`}</p>
    </div>
  );
}

/** The line with a mark at the place of the problem; of a long one, the part around it. */
function Place({ line, problem: { at, length } }: { line: string; problem: FilterProblem }) {
  const from = line.length <= MAX_SHOWN ? 0 : Math.max(0, at - MAX_SHOWN / 3);
  const to = from + MAX_SHOWN;
  return (
    <pre>
      {from > 0 ? '…' : ''}
      {escapeBidi(line.slice(from, at))}
      <mark>{escapeBidi(line.slice(at, Math.min(at + length, to))) || ' '}</mark>
      {escapeBidi(line.slice(at + length, to))}
      {line.length > to ? '…' : ''}
    </pre>
  );
}
const MAX_SHOWN = 90;

/** What the terms of a query can be, closed to begin with. */
export function QueryHelp({ screen }: { screen: FilteredScreen }) {
  return (
    <details className="more" id="query-help">
      <summary>Query terms</summary>
      <p className="hint">
        Words, and terms with a key, all of which must match:{' '}
        <code>ci state:active,expired !old &quot;two words&quot;</code>. The same query works on the command line. The
        secret of a token, or what is shown of it, finds its token.
      </p>
      <dl className="terms">
        {keysOf(screen, { projects: [] }).map(({ name, what }) => (
          <div key={name}>
            <dt>
              <code>{`${name}:`}</code>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
