/** A wrong command line, or a profile that cannot run with these options. */
export class UsageError extends Error {}
