/** A hook of Node's module loader, in a separate thread: notes every file that is loaded. */
import { appendFileSync } from 'node:fs';
import type { LoadHook } from 'node:module';

let list = '';

export function initialize({ path }: { path: string }): void {
  list = path;
}

export const load: LoadHook = (url, context, next) => {
  appendFileSync(list, `${url}\n`);
  return next(url, context);
};
