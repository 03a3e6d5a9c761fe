/** A line with a name and a value. */
import { fitted, strip, type Strip, text } from './strip.js';

export function fact(name: string, value: Strip | string, width: number): Strip {
  return strip(fitted([text(name, 'faint')], width), ' ', value);
}
