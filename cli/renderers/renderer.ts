/** Renders data for programs, with the line end. */
export interface Renderer {
  /**
   * A list, or an object.
   *
   * @param whole the value that `-o json` prints. @param items the rows of a table of the same data.
   */
  all(whole: unknown, items: readonly object[]): string | Promise<string>;
  /** An item of a stream. */
  next(item: object): string | Promise<string>;
}
