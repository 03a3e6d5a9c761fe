const MAX_REMEMBERED = 1_000;
const MAX_LENGTH = 64;

/**
 * Memoizes a function of a text that has few different values, such as the name of a header. The number and length of remembered texts
 * are limited, because strangers choose them.
 *
 * @param maxLength of a text that is remembered.
 */
export function boundedMemo<T>(compute: (text: string) => T, maxLength = MAX_LENGTH): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    let result = results.get(text);
    if (result === undefined) {
      result = compute(text);
      if (results.size < MAX_REMEMBERED && text.length <= maxLength) results.set(text, result);
    }
    return result;
  };
}
