/**
 * Marker lines, which have no audit record. They record, in the chain itself, that the file or the database was not as expected.
 * They have the fields of a record, without an ID. `seq` is the last record before the point where the copy continues.
 */
export type MarkerAction = 'audit.file_replaced' | 'audit.file_cut' | 'audit.database_behind';

export interface Marker {
  action: MarkerAction;
  /** Null in the use log. */
  seq: number | null;
  timeMs: number;
  details: Record<string, number | string | null>;
}

/** A JSON object without its opening brace. */
export function fieldsOfMarker({ action, seq, timeMs, details }: Marker): string {
  const shown = {
    ...(seq !== null && { seq }),
    id: null,
    time: new Date(timeMs).toISOString(),
    action,
    actor: 'system',
    outcome: 'error',
    project_id: null,
    token_id: null,
    obfuscated: null,
    request_id: null,
    client_ip: null,
    reason: null,
    count: null,
    details,
  };
  return JSON.stringify(shown).slice(1);
}

const ACTIONS: ReadonlySet<unknown> = new Set<MarkerAction>([
  'audit.file_replaced',
  'audit.file_cut',
  'audit.database_behind',
]);

/** Whether these are the fields of a marker. */
export const isMarker = (fields: Record<string, unknown>): boolean => fields.id === null && ACTIONS.has(fields.action);
