/** What is wrong with a token or a project, in one line. */
import type { Problem } from '../../console/problems.js';
import { type Piece, strip, type Strip, text, widthOf } from '../parts/strip.js';

export const signOf = ({ isFailure }: Problem): Piece => (isFailure ? text('✗ ', 'bad') : text('▲ ', 'warning'));

/** Of the first problem, the cause, how much is concerned if there is room, and what to do. Empty without a problem. */
export function problemLine([problem]: readonly Problem[], columns: number): Strip {
  if (problem === undefined) return [];
  const { isFailure, why, extent, remedy } = problem;
  const cause = strip(signOf(problem), text(why, isFailure ? 'bad' : 'warning'));
  const advice = strip(remedy !== null && text(`; ${remedy}`, 'faint'));
  const whole = strip(cause, extent !== '' && `, ${extent}`, advice);
  return widthOf(whole) <= columns ? whole : strip(cause, advice);
}
