/** Entries as they are read from the stream. */
import type { EventJson } from '../store/event-json.js';
import type { Delivery } from './backends/backend.js';

export interface Entry {
  /** The ID of the stream entry. */
  id: string;
  /** Alternating names and values; null if the entry was trimmed before it was read. */
  fields: readonly string[] | null;
}

/** @returns null if the entry is not an event, and so cannot be delivered. */
export function deliveryOf(fields: readonly string[]): Delivery | null {
  const at = fields.findIndex((name, index) => index % 2 === 0 && name === 'event');
  const json = at === -1 ? undefined : fields[at + 1];
  if (json === undefined) return null;
  try {
    const event: unknown = JSON.parse(json);
    if (!isEvent(event)) return null;
    // Backends write an event as one line, and the JSON in the stream may contain line breaks.
    return { event, json: /[\r\n]/.test(json) ? JSON.stringify(event) : json };
  } catch {
    return null;
  }
}

/** Checks the fields that every backend needs. Backends check other fields themselves, or pass them on unread. */
function isEvent(value: unknown): value is EventJson {
  const { schema, id, kind, time } = (value ?? {}) as Partial<Record<string, unknown>>;
  return schema === 1 && [id, kind, time].every((it) => typeof it === 'string');
}
