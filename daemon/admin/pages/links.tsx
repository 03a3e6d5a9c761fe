/** Links to projects and tokens. */
import { shortId } from '../../../console/columns/cell-text.js';
import type { Named } from '../../../console/columns/column.js';
import { Link } from './frame.js';
import { Name } from './formats.js';

export const NameOrId = ({ id, name }: Named) => (name ? <Name>{name}</Name> : <code>{shortId(id)}</code>);

/** The ID is in the tooltip. */
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
