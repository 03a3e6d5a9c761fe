/**
 * Imported into a daemon (`--import …/sabotaged.js?which=…`), it breaks the store on purpose: a test that does not detect this would not
 * detect a real defect.
 */
import { Sequelize } from 'sequelize';
import { SqliteReader, SqliteWriter } from '../../daemon/store/sql/sqlite.js';

type Sabotage = (sql: string) => string;

export const SABOTAGES = {
  'a take that does not check the cap': (sql) =>
    sql.replace('OR reserved - $giveBack + $take <= max_requests', 'OR TRUE'),
  'a start, or an expiry, that forgets the leases of dead instances': (sql) =>
    sql.replace('request_count = request_count +\n', 'request_count = request_count + 0 *\n'),
  'a settlement that does not write uses': (sql) =>
    sql.replace('request_count = request_count + $uses', 'request_count = request_count + 0 * $uses'),
  'changes that other instances do not hear of': (sql) =>
    sql.replace('FROM changes WHERE seq > $seq', 'FROM changes WHERE seq > $seq AND 1 = 0'),
  'a revocation that is not written': (sql) =>
    sql.replace(/SET is_active = (\$\w+)/, 'SET is_active = (is_active OR $1)'),
} satisfies Record<string, Sabotage>;

/** For Node itself. */
export const sabotaging = (which: keyof typeof SABOTAGES): string[] => [
  '--import',
  `${import.meta.url}?which=${encodeURIComponent(which)}`,
];

type Send = (this: unknown, sql: string, ...rest: unknown[]) => unknown;

const which = new URL(import.meta.url).searchParams.get('which');
if (which !== null) {
  const sabotage = SABOTAGES[which as keyof typeof SABOTAGES];
  for (const [on, names] of [
    [Sequelize.prototype, ['query']],
    [SqliteWriter.prototype, ['run', 'all']],
    [SqliteReader.prototype, ['all']],
  ] as unknown as [Record<string, Send>, string[]][]) {
    for (const name of names) {
      const shipped = on[name];
      on[name] = function (sql, ...rest) {
        return shipped?.call(this, sabotage(sql), ...rest);
      };
    }
  }
}
