/** Readiness of this instance, and what it is missing if it is not ready. */
export class Readiness {
  isDraining = false;
  isDatabaseReady = false;
  /** Names of the migrations that need `llmp migrate up`. */
  pendingMigrations: readonly string[] = [];

  /** Why changes are refused; null if they are allowed. Nothing may be encrypted before the encryption key is verified. */
  get whyNoChanges(): string | null {
    return this.isDatabaseReady ? null : 'the database is unavailable, or its schema is not up to date';
  }

  get missing(): string[] {
    const missing = [];
    if (this.isDraining) missing.push('draining');
    if (this.pendingMigrations.length > 0) missing.push('pending migrations');
    else if (!this.isDatabaseReady) missing.push('database');
    return missing;
  }
}
