/** Header fields by lower-case name; repeated fields are joined with commas. */
export type FieldValues = ReadonlyMap<string, string>;

/** @param headers alternating names and values. */
export function fieldsOf(headers: readonly string[]): FieldValues {
  const fields = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? '').toLowerCase();
    const value = headers[i + 1] ?? '';
    const before = fields.get(name);
    fields.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return fields;
}
