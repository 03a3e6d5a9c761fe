/** Entries of the stream as they are read. */
import type { EventJson } from '../store/event-json.js';
import type { Delivery } from './backends/backend.js';

export interface Entry {
  /** Of the stream. */
  id: string;
  /** Name, value, name, value …; null for one that was trimmed before it was read. */
  fields: readonly string[] | null;
}

/** @returns null for what is no event: nobody could deliver it. */
export function deliveryOf(fields: readonly string[]): Delivery | null {
  const at = fields.findIndex((name, index) => index % 2 === 0 && name === 'event');
  const json = at === -1 ? undefined : fields[at + 1];
  if (json === undefined) return null;
  try {
    const event: unknown = JSON.parse(json);
    if (!isEvent(event)) return null;
    // Back ends write an event as a line. White space between its parts may be anything.
    return { event, json: /[\r\n]/.test(json) ? JSON.stringify(event) : json };
  } catch {
    return null;
  }
}

/** As much as back ends rely on; what else an event holds they pass on, or read with care. */
function isEvent(value: unknown): value is EventJson {
  const { schema, id, kind, time } = (value ?? {}) as Partial<Record<string, unknown>>;
  return schema === 1 && [id, kind, time].every((it) => typeof it === 'string');
}
