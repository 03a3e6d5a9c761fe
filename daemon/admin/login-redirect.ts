const PLACEHOLDER_ORIGIN = 'http://anywhere';

/**
 * Redirect target after the login: always a page of the Admin UI, to prevent open redirects. The path comes from a link that anyone can
 * make, and browsers treat `//host` and `/\host` as another site.
 *
 * @param base base path of the pages, with a trailing slash.
 */
export function loginRedirectTarget(asked: string | null | undefined, base: string): string {
  if (!asked?.startsWith('/') || !URL.canParse(asked, PLACEHOLDER_ORIGIN)) return base;
  const { origin, pathname, search } = new URL(asked, PLACEHOLDER_ORIGIN);
  return origin === PLACEHOLDER_ORIGIN && pathname.startsWith(base) ? pathname + search : base;
}
