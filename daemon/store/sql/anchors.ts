/** How far the chains of audit files reached, and when: what a rewritten or cut file is found by. */
import { hostname } from 'node:os';
import type { Anchor, AnchorStore } from '../audit-file/chain.js';
import type { Database, Reader } from './database.js';
import { ANCHOR, type AnchorColumns, ANCHORS } from './tables.js';

/** What a chain is called in the database. One that machines share has files of each of them, at the same paths. */
const nameOf = (chain: string, { dialect }: Reader): string =>
  dialect.name === 'sqlite' ? chain : `${hostname()}:${chain}`;

/** @param chain the absolute path of the file it ends with, on this machine. */
export async function anchorsOf(on: Reader, chain: string): Promise<Anchor[]> {
  const rows = await on.select<AnchorColumns>(
    `SELECT ${ANCHOR.list} FROM audit_anchors WHERE chain = $chain ORDER BY line`,
    { chain: nameOf(chain, on) },
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
      { chain: nameOf(chain, this.#database) },
    );
    return row ? ANCHOR.of(row) : null;
  }

  /** An anchor is never moved: of a line that is anchored already nothing else is said. */
  async keep(chain: string, anchor: Anchor): Promise<void> {
    const name = nameOf(chain, this.#database);
    await this.#database.transact(async (tx) => {
      const known = await tx.select('SELECT line FROM audit_anchors WHERE chain = $chain AND line = $line', {
        chain: name,
        line: anchor.line,
      });
      if (known.length > 0) return;
      await ANCHORS.insert(tx, { chain: name, ...anchor });
    });
  }

  async drop(chain: string, beforeLine: number): Promise<void> {
    await this.#database.transact((tx) =>
      tx.execute('DELETE FROM audit_anchors WHERE chain = $chain AND line < $beforeLine', {
        chain: nameOf(chain, tx),
        beforeLine,
      }),
    );
  }
}
