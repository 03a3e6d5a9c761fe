/** The user of a front end, as reported to the daemon for its audit records. */
import { hostname, userInfo } from 'node:os';
import { MAX_USER_LENGTH } from '../daemon/api/vocabulary.js';

const attempt = (ask: () => string): string | undefined => {
  try {
    return ask() || undefined;
  } catch {
    return undefined;
  }
};

/**
 * `ana@laptop`; only the part that is known, or undefined if the system knows neither: a user ID in a container often has no name.
 */
export function reportedUser(): string | undefined {
  const user = attempt(() => userInfo().username);
  const host = attempt(hostname);
  const shown = user === undefined ? host && `@${host}` : host === undefined ? user : `${user}@${host}`;
  return shown === undefined ? undefined : Array.from(printable(shown)).slice(0, MAX_USER_LENGTH).join('');
}

/** The daemon accepts printable characters only. The pattern for all of Unicode takes a while to create, and most names are ASCII. */
const printable = (name: string) =>
  /^[\x20-\x7e]*$/.test(name) ? name : name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
