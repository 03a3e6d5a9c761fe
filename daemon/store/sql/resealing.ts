import { DecryptionFailed, type SecretBox } from '../secrets.js';
import type { Database } from './database.js';
import { upstreamKeyContext } from './projects.js';
import { PROJECTS, SEALED_KEY, type SealedKeyColumns } from './tables.js';

const BATCH_SIZE = 100;

export interface ResealResult {
  /** Upstream keys that were encrypted again; in a dry run, those that would be. */
  resealed: number;
  /** Projects whose upstream key cannot be decrypted with any of our keys. */
  unreadable: string[];
}

/**
 * Encrypts with the current key whatever was encrypted with the previous one. Runs next to daemons that know both keys, in small
 * transactions: an interrupted run can simply be repeated, and an upstream key that is changed meanwhile is encrypted with its new
 * value.
 */
export async function reseal(database: Database, box: SecretBox, isDryRun: boolean): Promise<ResealResult> {
  let resealed = 0;
  const unreadable = new Set<string>();
  for (let after = ''; ;) {
    const rows = await database.select<SealedKeyColumns>(
      `SELECT ${SEALED_KEY.list} FROM projects WHERE id > $after AND api_key_id <> $keyId ORDER BY id LIMIT ${BATCH_SIZE}`,
      { after, keyId: box.keyId },
    );
    const last = rows.at(-1);
    if (!last) return { resealed, unreadable: [...unreadable] };
    const opened = rows.flatMap((row) => {
      const secret = openOrNull(box, row);
      if (secret === null) unreadable.add(row.id);
      return secret === null ? [] : [{ row, secret }];
    });
    const written = isDryRun ? opened.length : await write(database, box, opened);
    resealed += written;
    // A key that was changed meanwhile may have been encrypted with the previous key, so this batch is read again.
    if (written === opened.length) after = last.id;
  }
}

/** Tries to decrypt the upstream keys of up to `most` projects. */
export async function checkSealedKeys(
  database: Pick<Database, 'select'>,
  box: SecretBox,
  most: number,
): Promise<{ opened: number; unreadable: string[]; isPreviousNeeded: boolean }> {
  const rows = await database.select<SealedKeyColumns>(
    `SELECT ${SEALED_KEY.list} FROM projects ORDER BY id LIMIT ${most}`,
  );
  const unreadable = rows.filter((row) => openOrNull(box, row) === null).map(({ id }) => id);
  return {
    opened: rows.length - unreadable.length,
    unreadable,
    isPreviousNeeded: rows.some(({ api_key_id: keyId }) => keyId !== box.keyId),
  };
}

function openOrNull(box: SecretBox, { id, api_key: text, api_key_id: keyId }: SealedKeyColumns): string | null {
  try {
    return box.open({ text, keyId }, upstreamKeyContext(id));
  } catch (error) {
    if (error instanceof DecryptionFailed) return null;
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
      const { text, keyId } = box.seal(secret, upstreamKeyContext(row.id));
      const before = { id: row.id, sealedKey: row.api_key };
      written += await PROJECTS.update(tx, before, { sealedKey: text, sealedWith: keyId });
    }
    return written;
  });
}
