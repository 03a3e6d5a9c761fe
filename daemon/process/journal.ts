/** The journal of systemd, as far as a process that writes lines to it need know. */
import { fstatSync } from 'node:fs';
import type { LogLevel } from '../core/ports.js';

export const STDOUT = 1;
export const STDERR = 2;

/** What in front of a line says how severe it is: sd-daemon(3). */
export const PRIORITY: Readonly<Record<LogLevel, string>> = { error: '<3>', warn: '<4>', info: '<6>', debug: '<7>' };

/**
 * Whether what is written there reaches the journal. The variable alone does not say: whoever is started from a unit inherits it, wherever
 * his output goes.
 *
 * @param journalStream $JOURNAL_STREAM: the device and the inode of the stream that is the journal's.
 */
export function leadsToJournal(journalStream: string | undefined, descriptor: number): boolean {
  if (!journalStream) return false;
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return journalStream === `${dev}:${ino}`;
  } catch {
    return false; // It is closed.
  }
}
