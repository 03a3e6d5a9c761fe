/** Links to projects and tokens. */
import type { WireProject } from '../../api/contract.js';
import { Link } from './frame.js';
import { Name, escapeBidi, shortId } from './formats.js';
import type { Choices } from './fields.js';

export const choicesOf = (projects: readonly WireProject[]): Choices =>
  projects.map(({ id, name }) => [id, escapeBidi(name)] as const);

/** The ID is in the tooltip of a link. */
interface Named {
  id: string;
  /** Null if it has no name or the name is unknown. */
  name: string | null;
}

/** An older daemon sends no names. */
export const NameOrId = ({ id, name }: Named) => (name ? <Name>{name}</Name> : <code>{shortId(id)}</code>);

export function TokenLink({ token: { id, name } }: { token: Named }) {
  return (
    <Link to={`tokens/${id}`} title={id}>
      <NameOrId id={id} name={name} />
    </Link>
  );
}

export function ProjectLink({ project: { id, name } }: { project: Named }) {
  return (
    <Link to={`projects/${id}`} title={id}>
      <NameOrId id={id} name={name} />
    </Link>
  );
}

interface Concerned {
  token_id: string | null;
  token_name: string | null;
  project_id: string | null;
  project_name: string | null;
}

/** The token and the project that an event or a record concerns. */
export const subjectsOf = ({ token_id, token_name, project_id, project_name }: Concerned) => ({
  token: token_id === null ? null : { id: token_id, name: token_name },
  project: project_id === null ? null : { id: project_id, name: project_name },
});

export const KeyHint = ({ hint }: { hint: string }) => <code>{`…${hint}`}</code>;
