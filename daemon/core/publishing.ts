/** What is published: requests whose token is known, so that a flood of others cannot fill the bus, and changes that were made. */
import type { AuditRecord } from './audit.js';
import { CHANGES_PUBLISHED, type RequestEnded } from './events.js';
import type { EventBus } from './ports.js';

export function publishRequest(bus: EventBus, ended: RequestEnded): void {
  if (ended.tokenId !== null) bus.publish({ kind: 'request', ended });
}

export function publishChanges(bus: EventBus, records: readonly AuditRecord[]): void {
  for (const record of records) {
    const isPublished = record.outcome === 'success' && CHANGES_PUBLISHED[record.action] !== undefined;
    if (isPublished) bus.publish({ kind: 'change', record });
  }
}
