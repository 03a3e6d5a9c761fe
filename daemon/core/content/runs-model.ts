/**
 * Which requests run a model. Only their responses report what was used: a response, a run or a batch that is retrieved, changed or
 * cancelled repeats the usage of the request that ran the model, however often it is read.
 */

/** POST to what exists already. Whatever follows the ID of a response or a run belongs to it. */
const IS_STORED =
  /\/(?:responses\/(?!compact$)[^/]+(?:\/.*)?|chat\/completions\/[^/]+|runs\/[^/]+(?:\/.*)?|batches(?:\/.*)?|cachedContents(?:\/.*)?|cancel)$/;

/** But the results of its tools continue a run. */
const CONTINUES_RUN = /\/runs\/[^/]+\/submit_tool_outputs$/;

/** POST to what only counts the tokens of a request. A path with other characters is not recognised, in case a server decodes it first. */
const COUNTS_TOKENS = /^[\w./:@~-]*(?:\/messages\/count_tokens|\/responses\/input_tokens|:countTokens)$/;

/**
 * Whether a request is a read: no model runs for it, and with `COUNT_READS=false` it does not spend a cap. A GET with a body is none,
 * because it could name another method in a header. The handshake of a WebSocket is none either; it is not for this function.
 *
 * @param target path of the request, with or without its query.
 */
export function isRead(method: string, target: string, hasBody: boolean): boolean {
  if (method === 'GET' || method === 'HEAD') return !hasBody;
  return method === 'POST' && COUNTS_TOKENS.test(withoutQuery(target));
}

/** @param target path of the request, with or without its query. */
export function runsModel(method: string, target: string): boolean {
  if (method !== 'POST') return false;
  const path = withoutQuery(target);
  return CONTINUES_RUN.test(path) || (!IS_STORED.test(path) && !COUNTS_TOKENS.test(path));
}

/** POST to what stores something, at the place where APIs have it. All that is not known may run a model. */
const STORES = /\/(?:v\d+\w*|openai)\/(?:files|uploads|vector_stores|conversations)(?:\/|$)/;
/** But `/threads/runs` creates a thread and runs a model on it. */
const THREADS = /\/threads(?:\/(?!runs$)[^/]+(?:\/messages(?:\/[^/]+)?)?)?$/;

/**
 * Whether a POST only stores something. What follows a colon is a method of what is stored, and may run a model.
 *
 * @param path without its query.
 */
export const onlyStores = (path: string): boolean =>
  STORES.test(path.slice(path.lastIndexOf(':') + 1)) || THREADS.test(path);

export function withoutQuery(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}
