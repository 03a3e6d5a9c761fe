/** What the program's crashes have in their messages, and nobody may see. */
export const SECRET = 'open-sesame';
