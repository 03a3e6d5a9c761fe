/** The schema was migrated by a newer build, and this one would damage it. */
export class SchemaTooNew extends Error {
  override name = 'SchemaTooNew';
}
