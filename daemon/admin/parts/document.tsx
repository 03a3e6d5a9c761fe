import type { ReactNode } from 'react';
import { SECRET_PATTERN } from '../../api/vocabulary.js';
import { Name } from './formats.js';
import { ChangeForm, isIssuer, Link, useFrame, type User } from './frame.js';

const SECTIONS = [
  { name: 'overview', title: 'Overview', to: '' },
  { name: 'tokens', title: 'Tokens', to: 'tokens' },
  { name: 'projects', title: 'Projects', to: 'projects' },
  { name: 'top', title: 'Top', to: 'top' },
  { name: 'usage', title: 'Usage', to: 'usage' },
  { name: 'events', title: 'Events', to: 'events' },
  { name: 'audit', title: 'Audit', to: 'audit' },
  { name: 'cache', title: 'Cache', to: 'cache' },
  { name: 'operators', title: 'Operators', to: 'operators' },
  { name: 'trusts', title: 'Trusts', to: 'trusts' },
] as const;

export type Section = (typeof SECTIONS)[number]['name'];

export interface DocumentProps {
  title: string;
  base: string;
  assets: { style: string; scripts: readonly string[]; icon: string };
  /** Null before the login: then there is no navigation. */
  section: Section | 'none' | null;
  /** Whether parts of the page refresh automatically. */
  isLive: boolean;
  children: ReactNode;
}

export function Document({ title, base, assets, section, isLive, children }: DocumentProps) {
  return (
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>{`${title} · llmp`}</title>
        <link rel="icon" href={base + assets.icon} type="image/svg+xml" />
        <link rel="stylesheet" href={base + assets.style} />
        {assets.scripts.map((script) => (
          <script key={script} src={base + script} defer />
        ))}
      </head>
      <body data-secrets={SECRET_PATTERN.source}>
        <a className="skip" href="#main">
          Skip to content
        </a>
        {section === null ? null : <Header section={section} />}
        <main
          id="main"
          tabIndex={-1}
          className={section === null ? 'alone' : undefined}
          data-refresh={isLive ? '' : undefined}
        >
          {children}
        </main>
      </body>
    </html>
  );
}

/** Who is logged in, and with which role. */
function Who({ user }: { user: User | null }) {
  if (user === null) return null;
  const { name, role } = user;
  return (
    <span className="who-am-i" title={user.actor}>
      <span className="unseen">Logged in: </span>
      <span className="name">{role === null ? 'Management token' : <Name>{name ?? user.actor}</Name>}</span>
      {role === null ? null : <span className="role">{role}</span>}
    </span>
  );
}

function Header({ section }: { section: Section | 'none' }) {
  const { offers } = useFrame();
  return (
    <header className="top">
      <Link to="" className="brand">
        llmp
      </Link>
      <nav aria-label="Pages">
        <ul>
          {SECTIONS.filter(({ to }) => offers.has('GET', to)).map(({ name, title, to }) => (
            <li key={name}>
              <Link to={to} aria-current={name === section ? 'page' : undefined}>
                {name === 'overview' && isIssuer(offers.user) ? 'My tokens' : title}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <ChangeForm to="logout" className="logout">
        <Who user={offers.user} />
        <button type="submit" className="quiet">
          Log out
        </button>
      </ChangeForm>
    </header>
  );
}

/** Heading of a page, with its actions and the status of its automatic refresh. */
export function Heading({ title, actions, path }: { title: ReactNode; actions?: ReactNode; path?: ReactNode }) {
  return (
    <div className="heading">
      <div>
        {path ? <p className="path">{path}</p> : null}
        <h1>{title}</h1>
      </div>
      <p className="live" data-live-status="" hidden />
      {actions ? <div className="actions">{actions}</div> : null}
    </div>
  );
}
