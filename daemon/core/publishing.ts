/** Publishes requests with a known token (a flood of other requests must not fill the bus) and successful changes. */
import type { NamedRecord } from './audit.js';
import { CHANGES_PUBLISHED, type RequestEnded } from './events.js';
import type { EventBus } from './ports.js';

export function publishRequest(bus: EventBus, ended: RequestEnded): void {
  if (ended.tokenId !== null) bus.publish({ kind: 'request', ended });
}

export function publishChanges(bus: EventBus, records: readonly NamedRecord[]): void {
  for (const record of records) {
    const isPublished = record.outcome === 'success' && CHANGES_PUBLISHED[record.action] !== undefined;
    if (isPublished) bus.publish({ kind: 'change', record });
  }
}
