import { ApiError, Unreachable } from '../api/client.js';

/** What is told, as a page, to whoever asked for another. */
export class Problem extends Error {
  readonly status: number;
  readonly title: string;

  constructor(status: number, title: string, message: string) {
    super(message);
    this.status = status;
    this.title = title;
  }
}

/** @returns null for what whoever serves us deals with. */
export function problemIn(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (error instanceof Unreachable) {
    return new Problem(503, 'The daemon does not answer', `${error.message}. Try again in a moment.`);
  }
  if (!(error instanceof ApiError)) return null;
  if (error.status === 404) return new Problem(404, 'Not there', 'What this page was about does not exist.');
  if (error.status === 401) {
    return new Problem(
      502,
      'The daemon does not know this Admin UI',
      'Its MANAGEMENT_TOKEN is another than the daemon’s. Start it again with the same.',
    );
  }
  if (error.status < 500) return new Problem(400, 'Not understood', `${error.message}.`);
  return new Problem(
    503,
    'Not available now',
    'The database or the audit log cannot be reached. Try again in a moment.',
  );
}
