/**
 * Lines that no record stands for: they say, in the chain itself, that the file or the database was not what it should have been.
 * They have the fields of a record without an id. `seq` is that of the last record before the place where the copy goes on.
 */
export type MarkerAction = 'audit.file_replaced' | 'audit.file_cut' | 'audit.database_behind';

export interface Marker {
  action: MarkerAction;
  /** Null in the file of uses. */
  seq: number | null;
  timeMs: number;
  details: Record<string, number | string | null>;
}

/** A JSON object without its first brace. */
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

/** Whether the fields of a line are a marker's. */
export const isMarker = (fields: Record<string, unknown>): boolean => fields.id === null && ACTIONS.has(fields.action);
