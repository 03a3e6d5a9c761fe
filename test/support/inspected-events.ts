/** Holds every event that a daemon of the suite publishes against what is said of events. */
import * as z from 'zod';
import { event as described } from '../../daemon/api/schemas.js';
import type { Happening } from '../../daemon/core/events.js';
import type { EventBus } from '../../daemon/core/ports.js';
import { eventText } from '../../daemon/store/event-text.js';
import { inspect } from './leaks.js';

const misfits: string[] = [];
let checked = 0;

/** Looks at what the daemon publishes, as it does. */
export function inspectEvents(bus: EventBus): void {
  const publish = bus.publish.bind(bus);
  bus.publish = (happening) => {
    inspectEvent(happening);
    publish(happening);
  };
}

function inspectEvent(happening: Happening): void {
  const text = eventText(happening, 'the suite');
  inspect('event', text);
  checked += 1;
  const problem = problemOf(text);
  if (problem !== null && misfits.length < 10) misfits.push(`${problem}: ${text}`);
}

/** @returns null when the text is an event as it is described, in one line. */
export function problemOf(text: string): string | null {
  if (/[\r\n]/.test(text)) return 'several lines';
  try {
    const { error } = described.safeParse(JSON.parse(text));
    return error ? z.prettifyError(error) : null;
  } catch {
    return 'no JSON';
  }
}

/** What did not fit, since this was last asked. */
export const takeMisfits = (): readonly string[] => misfits.splice(0);
export const eventsChecked = (): number => checked;
