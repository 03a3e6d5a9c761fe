/** Support for writing log lines to the journal of systemd. */
import { fstatSync } from 'node:fs';
import type { LogLevel } from '../core/ports.js';

export const STDOUT = 1;
export const STDERR = 2;

/** The prefix of a line that sets its priority: sd-daemon(3). */
export const PRIORITY: Readonly<Record<LogLevel, string>> = { error: '<3>', warn: '<4>', info: '<6>', debug: '<7>' };

/**
 * Whether a descriptor is connected to the journal. It is not enough that the variable is set: child processes of a unit inherit it, even if their
 * output goes elsewhere.
 *
 * @param journalStream $JOURNAL_STREAM: device and inode of the stream that is connected to the journal.
 */
export function isJournalStream(journalStream: string | undefined, descriptor: number): boolean {
  if (!journalStream) return false;
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return journalStream === `${dev}:${ino}`;
  } catch {
    return false; // The descriptor is closed.
  }
}
