/** Context of every page, and the links and forms that depend on it. */
import { createContext, type ReactNode, use } from 'react';

export interface Frame {
  /** Base path of all pages, with a trailing slash. */
  base: string;
  /** CSRF token in every form of the session. Null before the login. */
  formToken: string | null;
  nowMs: number;
}

export const FrameContext = createContext<Frame | null>(null);

export function useFrame(): Frame {
  const frame = use(FrameContext);
  if (!frame) throw new Error('rendered without FrameContext');
  return frame;
}

/** @property to path relative to the base, without a leading slash. */
interface LinkProps {
  to: string;
  children: ReactNode;
  [attribute: string]: unknown;
}

export function Link({ to, children, ...more }: LinkProps) {
  return (
    <a href={useFrame().base + to} {...more}>
      {children}
    </a>
  );
}

/** A link to a confirmation page. With scripts, that page opens as a dialog. */
export function ConfirmLink({ to, children, isDangerous = false }: LinkProps & { isDangerous?: boolean }) {
  return (
    <Link to={to} className={isDangerous ? 'button danger' : 'button'} data-dialog="">
      {children}
    </Link>
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

/** A POST form: it makes a change. */
export function ChangeForm({ to, children, ...more }: LinkProps) {
  const { base, formToken } = useFrame();
  return (
    <form method="post" action={base + to} autoComplete="off" {...more}>
      {formToken !== null && <input type="hidden" name={FORM_TOKEN} value={formToken} />}
      {children}
    </form>
  );
}

/** A GET form: its fields become the query of the target page. */
export function QueryForm({ to, children, ...more }: LinkProps) {
  return (
    <form method="get" action={useFrame().base + to} autoComplete="off" {...more}>
      {children}
    </form>
  );
}
