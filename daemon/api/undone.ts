/** What an undo left as it is, in words. */
import { exact } from './formats.js';
import type { WireBatchUndone } from './contract.js';
import { UNDO_SKIPS, type UndoSkip } from './vocabulary.js';

const WORDS: Readonly<Record<UndoSkip, readonly [one: string, several: string]>> = {
  changed_since: ['was changed again since and stays as it is', 'were changed again since and stay as they are'],
  undone_before: ['was undone before', 'were undone before'],
  unchanged: ['had not been changed', 'had not been changed'],
  expired: ['has expired since', 'have expired since'],
  gone: ['does not exist any more', 'do not exist any more'],
  irreversible: ['cannot be undone', 'cannot be undone'],
  refused: ['was refused', 'were refused'],
};

/** A sentence for each reason: `2 were changed again since and stay as they are.` */
export function skippedSentences(skipped: WireBatchUndone['skipped']): string[] {
  return UNDO_SKIPS.flatMap((reason) => {
    const of = skipped.filter((one) => one.reason === reason);
    if (of.length === 0) return [];
    const messages = [...new Set(of.flatMap(({ message }) => message ?? []))];
    const why = messages.length > 0 ? `: ${messages.join('; ')}` : '';
    return [`${exact(of.length)} ${WORDS[reason][of.length === 1 ? 0 : 1]}${why}.`];
  });
}
