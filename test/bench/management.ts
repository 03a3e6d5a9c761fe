/** The management API, as a profile calls it. */
import { Failure } from './processes.js';

export const MANAGEMENT_TOKEN = 'management-token-of-the-benchmark';

/** @throws {Failure} unless it succeeds. */
export async function manage<T>(url: string, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${MANAGEMENT_TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Failure(`${path}: ${response.status} ${await response.text()}`);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
