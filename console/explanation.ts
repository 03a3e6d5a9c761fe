/** The details of a failure besides its message. */
export interface Explanation {
  /** Shown below the message as they are, such as the place of an error in a text. */
  details?: readonly string[];
  why?: string;
  /** What to do next. */
  advice?: string;
  /** An error code for programs; the daemon's code if it sent one. */
  code?: string;
  requestId?: string | null;
  cause?: unknown;
}
