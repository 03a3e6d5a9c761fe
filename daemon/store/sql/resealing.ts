import { CannotOpen, type SecretBox } from '../secrets.js';
import type { Database } from './database.js';
import { placeOfKey } from './projects.js';

const AT_ONCE = 100;

export interface Resealed {
  /** Upstream keys that were sealed anew; in a rehearsal, those that would be. */
  resealed: number;
  /** Projects whose upstream key none of our keys opens. */
  unreadable: string[];
}

interface Row {
  id: string;
  api_key: string;
  api_key_id: string;
}

/**
 * Seals with the box's own key whatever was sealed with the one before. Beside daemons that know both keys, in small transactions;
 * whoever is killed goes on where it was, and a key that is changed meanwhile stays as it was changed.
 */
export async function reseal(database: Database, box: SecretBox, isRehearsal: boolean): Promise<Resealed> {
  const done: Resealed = { resealed: 0, unreadable: [] };
  for (let after = ''; ;) {
    const rows = await database.select<Row>(
      `SELECT id, api_key, api_key_id FROM projects WHERE id > $after AND api_key_id <> $keyId ORDER BY id LIMIT ${AT_ONCE}`,
      { after, keyId: box.keyId },
    );
    const last = rows.at(-1);
    if (!last) return done;
    after = last.id;
    const opened = rows.flatMap((row) => {
      const secret = openedBy(box, row);
      if (secret === null) done.unreadable.push(row.id);
      return secret === null ? [] : [{ row, secret }];
    });
    done.resealed += isRehearsal ? opened.length : await write(database, box, opened);
  }
}

function openedBy(box: SecretBox, { id, api_key: text, api_key_id: keyId }: Row): string | null {
  try {
    return box.open({ text, keyId }, placeOfKey(id));
  } catch (error) {
    if (error instanceof CannotOpen) return null;
    throw error;
  }
}

function write(database: Database, box: SecretBox, opened: readonly { row: Row; secret: string }[]): Promise<number> {
  return database.transact(async (tx) => {
    let written = 0;
    for (const { row, secret } of opened) {
      const { text, keyId } = box.seal(secret, placeOfKey(row.id));
      written += await tx.execute(
        'UPDATE projects SET api_key = $text, api_key_id = $keyId WHERE id = $id AND api_key = $before',
        { text, keyId, id: row.id, before: row.api_key },
      );
    }
    return written;
  });
}
