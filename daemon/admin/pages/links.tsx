/** Links to projects and tokens. */
import type { WireProject } from '../../api/contract.js';
import { Link } from './frame.js';
import { Name, escapeBidi, shortId } from './formats.js';
import type { Choices } from './fields.js';

export type Names = ReadonlyMap<string, string>;

export const namesOf = (projects: readonly WireProject[]): Names => new Map(projects.map(({ id, name }) => [id, name]));

export const choicesOf = (projects: readonly WireProject[]): Choices =>
  projects.map(({ id, name }) => [id, escapeBidi(name)] as const);

interface Named {
  id: string;
  /** Null if it has no name or the name is unknown. */
  name: string | null;
}

const NameOrId = ({ id, name }: Named) => (name === null ? <code>{shortId(id)}</code> : <Name>{name}</Name>);

export function TokenLink({ token: { id, name } }: { token: Named }) {
  return (
    <Link to={`tokens/${id}`}>
      <NameOrId id={id} name={name} />
    </Link>
  );
}

export function ProjectLink({ id, names }: { id: string; names: Names }) {
  return (
    <Link to={`projects/${id}`}>
      <NameOrId id={id} name={names.get(id) ?? null} />
    </Link>
  );
}

export const KeyHint = ({ hint }: { hint: string }) => <code>{`…${hint}`}</code>;
