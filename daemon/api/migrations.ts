import type { WireMigrations } from './contract.js';

/** State of the database schema, from any source. */
export interface MigrationReport {
  current: string | null;
  pending: string[];
  applied: { name: string; appliedAtMs: number }[];
}

export function wireMigrations(report: MigrationReport): WireMigrations {
  return {
    current: report.current,
    pending: report.pending,
    applied: report.applied.map(({ name, appliedAtMs }) => ({ name, applied_at: new Date(appliedAtMs).toISOString() })),
  };
}
