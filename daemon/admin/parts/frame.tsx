/** Context of every page, and the links and forms that depend on it. */
import { createContext, type ReactNode, use } from 'react';
import type { WireSelf } from '../../api/contract.js';
import type { Permission } from '../../api/permissions.js';

/** Who is logged in. */
export type User = WireSelf;

/** An issuer begins with its own tokens. */
export const isIssuer = (user: User | null): boolean => user?.role === 'issuer';

/** What the pages offer: see offers.ts. */
export interface Offers {
  /** Null before the login. */
  user: User | null;
  may: (permission: Permission) => boolean;
  /** Whether the user may open a page or send a form. @param to relative to the base; it may have a query. What is not listed is for everybody. */
  has: (method: 'GET' | 'POST', to: string) => boolean;
}

export interface Frame {
  /** Base path of all pages, with a trailing slash. */
  base: string;
  /** CSRF token in every form of the session. Null before the login. */
  formToken: string | null;
  nowMs: number;
  offers: Offers;
  /** The field of the page's form that was refused: it has the focus. */
  wrong?: { field: string; why: string } | undefined;
}

export const FrameContext = createContext<Frame | null>(null);

export function useFrame(): Frame {
  const frame = use(FrameContext);
  if (!frame) throw new Error('rendered without FrameContext');
  return frame;
}

/** Whether the user may do it. */
export const useMay = (): Offers['may'] => useFrame().offers.may;

/** @property to path relative to the base, without a leading slash. */
interface LinkProps {
  to: string;
  children: ReactNode;
  [attribute: string]: unknown;
}

/** A link; only its text if the user may not open it. */
export function Link({ to, children, ...more }: LinkProps) {
  const { base, offers } = useFrame();
  if (!offers.has('GET', to)) return <>{children}</>;
  return (
    <a href={base + to} {...more}>
      {children}
    </a>
  );
}

/** A link to something to do; nothing if the user may not do it. */
export function ActionLink(props: LinkProps) {
  return useFrame().offers.has('GET', props.to) ? <Link {...props} /> : null;
}

/** A link to a confirmation page. With scripts, that page opens as a dialog. */
export function ConfirmLink({ to, children, isDangerous = false }: LinkProps & { isDangerous?: boolean }) {
  return (
    <ActionLink to={to} className={isDangerous ? 'button danger' : 'button'} data-dialog="">
      {children}
    </ActionLink>
  );
}

/** Where the rest of a page goes that is sent while it is made (`PageView.rest`). Without scripts and styles it is invisible. */
const RestOfPage = () => <template id={REST_ID} />;

/** How far a change of many has come: parts that are sent when they are made. The style shows only the last one that has come. */
export const PartsOfPage = () => (
  <div className="last-only">
    <p>Keep this page open until it is done.</p>
    <RestOfPage />
  </div>
);
const REST_ID = 'rest-of-page';
/** `RestOfPage` in the HTML. */
export const REST_MARK = `<template id="${REST_ID}"></template>`;

export const FORM_TOKEN = 'form_token';

/** A POST form: it makes a change. Nothing if the user may not make it. */
export function ChangeForm({ to, children, ...more }: LinkProps) {
  const { base, formToken, offers } = useFrame();
  if (!offers.has('POST', to)) return null;
  return (
    <form method="post" action={base + to} autoComplete="off" {...more}>
      {formToken !== null && <input type="hidden" name={FORM_TOKEN} value={formToken} />}
      {children}
    </form>
  );
}

/** A GET form: its fields become the query of the target page. Nothing if the user may not open that. */
export function QueryForm({ to, children, ...more }: LinkProps) {
  const { base, offers } = useFrame();
  if (!offers.has('GET', to)) return null;
  return (
    <form method="get" action={base + to} autoComplete="off" {...more}>
      {children}
    </form>
  );
}
