/**
 * Which requests run a model. Only their responses report what was used: a response, a run or a batch that is retrieved, changed or
 * cancelled repeats the usage of the request that ran the model, however often it is read.
 */

/** POST to what exists already. Whatever follows the ID of a response or a run belongs to it, except the tools' results of a run. */
const IS_STORED =
  /\/(?:responses\/(?!compact$)[^/]+(?:\/.*)?|chat\/completions\/[^/]+|runs\/(?!.*\/submit_tool_outputs$)[^/]+(?:\/.*)?|batches(?:\/.*)?|cachedContents(?:\/.*)?|cancel)$/;

/** @param target path of the request, with or without its query. */
export function runsModel(method: string, target: string): boolean {
  if (method !== 'POST') return false;
  const query = target.indexOf('?');
  return !IS_STORED.test(query === -1 ? target : target.slice(0, query));
}
