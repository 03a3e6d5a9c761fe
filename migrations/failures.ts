/** The schema was migrated by a newer build, and this one would damage it. */
export class SchemaTooNew extends Error {
  override name = 'SchemaTooNew';
}

/** Another process held the migration lock for too long. */
export class MigrationsLocked extends Error {
  override name = 'MigrationsLocked';
}
