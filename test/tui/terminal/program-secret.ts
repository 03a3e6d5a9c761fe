/** A secret in the crash messages of the program, which must not be shown. */
export const SECRET = 'open-sesame';
