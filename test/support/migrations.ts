/** All there are, in their order. */
export const MIGRATIONS = [
  '0001-first-tables',
  '0002-audit-order',
  '0003-usage',
  '0004-state-counts',
  '0005-several-instances',
  '0006-usage-outcomes',
];
export const LAST_MIGRATION = MIGRATIONS.at(-1);
