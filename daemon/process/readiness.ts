/** Whether this instance can do its work now, and if not, what is missing. */
export class Readiness {
  isDraining = false;
  isDatabaseReady = false;
  /** Names of migrations that wait for `llmp migrate up`. */
  pendingMigrations: readonly string[] = [];

  /** Why no change may be made yet: what is sealed with an encryption key must not be before that is known to be the right one. */
  get whyNoChanges(): string | null {
    return this.isDatabaseReady ? null : 'the database has not come, or its schema is not up to date';
  }

  get missing(): string[] {
    const missing = [];
    if (this.isDraining) missing.push('draining');
    if (this.pendingMigrations.length > 0) missing.push('pending migrations');
    else if (!this.isDatabaseReady) missing.push('database');
    return missing;
  }
}
