/**
 * What the pages offer to a user. Each route declares the permission that it needs, and permissions.ts says which roles have it. Links
 * and forms ask here about their target, so that no page offers what its user may not do. The daemon enforces it.
 */
import { isPermitted, type Permission } from '../api/permissions.js';
import type { Route } from './page-request.js';
import type { Offers, User } from './parts/frame.js';

/** @param routes in the order in which they match. */
export function offersOf(routes: readonly Route[]): (user: User | null) => Offers {
  const patterns = routes.map(({ method, path, permission }) => ({
    method,
    pattern: new RegExp(`^${path.replace(/:id/g, '[^/]+')}$`),
    permission,
  }));
  return (user) => {
    const may = (permission: Permission) => user !== null && isPermitted(user, permission);
    return {
      user,
      may,
      has: (method, to) => {
        const path = `/${to.replace(/[?#].*$/, '')}`;
        const route = patterns.find((it) => it.method === method && it.pattern.test(path));
        // Before the login it is not known.
        return route === undefined || user === null || may(route.permission);
      },
    };
  };
}
