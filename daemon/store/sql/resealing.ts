import { CannotOpen, type SecretBox } from '../secrets.js';
import type { Database } from './database.js';
import { placeOfKey } from './projects.js';
import { PROJECTS, SEALED_KEY, type SealedKeyColumns } from './tables.js';

const AT_ONCE = 100;

export interface Resealed {
  /** Upstream keys that were sealed anew; in a rehearsal, those that would be. */
  resealed: number;
  /** Projects whose upstream key none of our keys opens. */
  unreadable: string[];
}

/**
 * Seals with the box's own key whatever was sealed with the one before. Beside daemons that know both keys, in small transactions;
 * whoever is killed goes on where it was, and of a key that is changed meanwhile the new value is sealed.
 */
export async function reseal(database: Database, box: SecretBox, isRehearsal: boolean): Promise<Resealed> {
  let resealed = 0;
  const unreadable = new Set<string>();
  for (let after = ''; ;) {
    const rows = await database.select<SealedKeyColumns>(
      `SELECT ${SEALED_KEY.list} FROM projects WHERE id > $after AND api_key_id <> $keyId ORDER BY id LIMIT ${AT_ONCE}`,
      { after, keyId: box.keyId },
    );
    const last = rows.at(-1);
    if (!last) return { resealed, unreadable: [...unreadable] };
    const opened = rows.flatMap((row) => {
      const secret = openedBy(box, row);
      if (secret === null) unreadable.add(row.id);
      return secret === null ? [] : [{ row, secret }];
    });
    const written = isRehearsal ? opened.length : await write(database, box, opened);
    resealed += written;
    // What was changed in between may have been sealed with the key before, and is looked at once more.
    if (written === opened.length) after = last.id;
  }
}

/** Tries the box on the upstream keys of so many projects at most. */
export async function trySealed(
  database: Pick<Database, 'select'>,
  box: SecretBox,
  most: number,
): Promise<{ opened: number; unreadable: string[]; isPreviousNeeded: boolean }> {
  const rows = await database.select<SealedKeyColumns>(
    `SELECT ${SEALED_KEY.list} FROM projects ORDER BY id LIMIT ${most}`,
  );
  const unreadable = rows.filter((row) => openedBy(box, row) === null).map(({ id }) => id);
  return {
    opened: rows.length - unreadable.length,
    unreadable,
    isPreviousNeeded: rows.some(({ api_key_id: keyId }) => keyId !== box.keyId),
  };
}

function openedBy(box: SecretBox, { id, api_key: text, api_key_id: keyId }: SealedKeyColumns): string | null {
  try {
    return box.open({ text, keyId }, placeOfKey(id));
  } catch (error) {
    if (error instanceof CannotOpen) return null;
    throw error;
  }
}

function write(
  database: Database,
  box: SecretBox,
  opened: readonly { row: SealedKeyColumns; secret: string }[],
): Promise<number> {
  return database.transact(async (tx) => {
    let written = 0;
    for (const { row, secret } of opened) {
      const { text, keyId } = box.seal(secret, placeOfKey(row.id));
      const before = { id: row.id, sealedKey: row.api_key };
      written += await PROJECTS.update(tx, before, { sealedKey: text, sealedWith: keyId });
    }
    return written;
  });
}
