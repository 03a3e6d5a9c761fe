/** Options of Node for a process that serves requests. */

/**
 * The most to which V8 may grow each half of the young generation, in MB. A garbage collection interrupts the requests in flight for
 * some milliseconds, so with V8's own maximum (16 MB before V8 13) three requests in a hundred meet one. A process cannot change it after its start.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=32'];
