/** Anchors of the audit files in the database: how far each chain had reached, and when. They reveal a file that was rewritten or cut. */
import { hostname } from 'node:os';
import type { Anchor, AnchorStore } from '../audit-file/anchors.js';
import type { Database, Reader } from './database.js';
import { ANCHOR, type AnchorColumns, ANCHORS } from './tables.js';

/**
 * Name of a chain in the database. In a shared database it includes the host name, because several machines have audit files at the
 * same path.
 */
const storedName = (chain: string, { dialect }: Reader): string =>
  dialect.name === 'sqlite' ? chain : `${hostname()}:${chain}`;

/** @param chain absolute path of the chain's current file, on this machine. */
export async function anchorsOf(on: Reader, chain: string): Promise<Anchor[]> {
  const rows = await on.select<AnchorColumns>(
    `SELECT ${ANCHOR.list} FROM audit_anchors WHERE chain = $chain ORDER BY line`,
    { chain: storedName(chain, on) },
  );
  return rows.map(ANCHOR.of);
}

export class SqlAnchors implements AnchorStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  last(chain: string): Promise<Anchor | null> {
    return this.newest(chain, 0);
  }

  async newest(chain: string, back: number): Promise<Anchor | null> {
    const [row] = await this.#database.select<AnchorColumns>(
      `SELECT ${ANCHOR.list} FROM audit_anchors WHERE chain = $chain
       ORDER BY line DESC LIMIT 1 OFFSET ${Math.trunc(back)}`,
      { chain: storedName(chain, this.#database) },
    );
    return row ? ANCHOR.of(row) : null;
  }

  /** An anchor never changes: a second one for the same line is ignored. */
  async save(chain: string, anchor: Anchor): Promise<void> {
    const name = storedName(chain, this.#database);
    await this.#database.transact(async (tx) => {
      const known = await tx.select('SELECT line FROM audit_anchors WHERE chain = $chain AND line = $line', {
        chain: name,
        line: anchor.line,
      });
      if (known.length > 0) return;
      await ANCHORS.insert(tx, { chain: name, ...anchor });
    });
  }

  async deleteBefore(chain: string, beforeLine: number): Promise<void> {
    await this.#database.transact((tx) =>
      tx.execute('DELETE FROM audit_anchors WHERE chain = $chain AND line < $beforeLine', {
        chain: storedName(chain, tx),
        beforeLine,
      }),
    );
  }
}
