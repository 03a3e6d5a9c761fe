/** Checks every event that a daemon of the suite publishes against the description of events. */
import * as z from 'zod';
import { event as described } from '../../daemon/api/schemas.js';
import type { PublishableEvent } from '../../daemon/core/events.js';
import type { EventBus } from '../../daemon/core/ports.js';
import { eventText } from '../../daemon/store/event-text.js';
import { inspect } from './leaks.js';

const misfits: string[] = [];
let checked = 0;

/** Checks each event when the daemon publishes it. */
export function inspectEvents(bus: EventBus): void {
  const publish = bus.publish.bind(bus);
  bus.publish = (happening) => {
    inspectEvent(happening);
    publish(happening);
  };
}

function inspectEvent(happening: PublishableEvent): void {
  const text = eventText(happening, 'the suite');
  inspect('event', text);
  checked += 1;
  const problem = problemOf(text);
  if (problem !== null && misfits.length < 10) misfits.push(`${problem}: ${text}`);
}

/** @returns null if the text is an event that matches the description, in one line. */
export function problemOf(text: string): string | null {
  if (/[\r\n]/.test(text)) return 'several lines';
  try {
    const { error } = described.safeParse(JSON.parse(text));
    return error ? z.prettifyError(error) : null;
  } catch {
    return 'no JSON';
  }
}

/** The events that did not match, since the last call. */
export const takeMismatches = (): readonly string[] => misfits.splice(0);
export const eventsChecked = (): number => checked;
