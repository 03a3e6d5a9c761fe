const ANYWHERE = 'http://anywhere';

/**
 * Where to go after the log-in: a page of ours, whatever was asked for. Browsers take `//host` and `/\host` for another site, and a
 * link can be given to anybody.
 *
 * @param base the path below which our pages are, with a slash at its end.
 */
export function nextOf(asked: string | null | undefined, base: string): string {
  if (!asked?.startsWith('/') || !URL.canParse(asked, ANYWHERE)) return base;
  const { origin, pathname, search } = new URL(asked, ANYWHERE);
  return origin === ANYWHERE && pathname.startsWith(base) ? pathname + search : base;
}
