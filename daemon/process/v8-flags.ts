/**
 * Disables pretenuring: V8 allocates objects directly in the old generation if most earlier objects of the same line of code survived for a while.
 * A few slow requests are enough for that. From then on these objects keep all data of their request alive until the next full garbage collection,
 * and full collections take two fifths of the time. The data of a request belongs in the young generation.
 */
export const PRETENURING_OFF = '--no-allocation-site-pretenuring';

/**
 * Lets the young generation grow to its maximum in one step, as soon as there is load: V8 doubles it only when more has survived than it
 * holds, and of a request hardly anything survives. Set after the start, so that an idle daemon stays small.
 */
export const GROW_UNDER_LOAD = '--semi-space-growth-factor=64';

/**
 * Lets the young generation fill up. By default V8 collects it between two turns of the event loop as soon as 80 % of it are used, so a fifth
 * of it is hardly ever used. With 95 %, a sixth fewer requests meet a collection, for up to 10 MB more memory. What is left is enough for one
 * turn, so few collections interrupt one.
 */
export const FILL_YOUNG_GENERATION = '--minor-gc-task-trigger=95';
