/** What every page needs to know of where and when it is shown, and what leads from it to others. */
import { createContext, type ReactNode, use } from 'react';

export interface Frame {
  /** The path below which all pages are, with a slash at its end. */
  base: string;
  /** Goes with every form, and shows that it is one of ours. Null before the log-in. */
  formToken: string | null;
  nowMs: number;
}

export const FrameContext = createContext<Frame | null>(null);

export function useFrame(): Frame {
  const frame = use(FrameContext);
  if (!frame) throw new Error('shown outside of a frame');
  return frame;
}

/** @property to below the base, without a slash in front. */
interface Leading {
  to: string;
  children: ReactNode;
  [attribute: string]: unknown;
}

export function Link({ to, children, ...more }: Leading) {
  return (
    <a href={useFrame().base + to} {...more}>
      {children}
    </a>
  );
}

/** A link to a page that asks first; where scripts run, it is shown on top of this one. */
export function AskingLink({ to, children, isDangerous = false }: Leading & { isDangerous?: boolean }) {
  return (
    <Link to={to} className={isDangerous ? 'button danger' : 'button'} data-dialog="">
      {children}
    </Link>
  );
}

export const FORM_TOKEN = 'form_token';

/** A form that changes something. */
export function ChangeForm({ to, children, ...more }: Leading) {
  const { base, formToken } = useFrame();
  return (
    <form method="post" action={base + to} autoComplete="off" {...more}>
      {formToken !== null && <input type="hidden" name={FORM_TOKEN} value={formToken} />}
      {children}
    </form>
  );
}

/** A form whose fields become the query of the page it leads to. */
export function QueryForm({ to, children, ...more }: Leading) {
  return (
    <form method="get" action={useFrame().base + to} autoComplete="off" {...more}>
      {children}
    </form>
  );
}
