/** The SQL that only SQLite understands. Whatever else the stores say is any database's. */

/** Goes behind a table and says which way to take to its rows: SQLite, left to itself, collects and sorts all of them. */
export const by = (index: string) => `INDEXED BY ${index}`;

/** `FROM` those rows of `table` alone whose `column` is in the JSON array bound to `list`, found one by one. */
export const among = (table: string, column: string, list: string) =>
  `json_each(${list}) AS listed CROSS JOIN ${table} ON ${column} = listed.value`;

/** Whether a column holds a text, letter by letter: LIKE, which folds case as well, takes a fifth more of a million names. */
export const contains = (column: string, bind: string) => `INSTR(${column}, ${bind}) > 0`;
