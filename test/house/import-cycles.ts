/** Circular imports: files that import themselves, directly or through others. */

/** What each file imports, by their paths. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/**
 * For every file that can be reached from itself: one shortest cycle, such as `a -> b -> a`. The files of a cycle are reported once, so
 * fixing it may reveal another one that it hid.
 */
export function findCycles(imports: Imports): string[] {
  const told = new Set<string>();
  return [...imports.keys()].sort().flatMap((file) => {
    if (told.has(file)) return [];
    const way = shortestCycle(file, imports);
    if (!way) return [];
    for (const passed of way) told.add(passed);
    return [way.join(' -> ')];
  });
}

/** @returns the files on the shortest way from `file` to itself, including both ends; undefined if there is none. */
function shortestCycle(file: string, imports: Imports): string[] | undefined {
  const reachedFrom = new Map<string, string>();
  const open = [file];
  for (let from = open.shift(); from !== undefined; from = open.shift()) {
    for (const target of imports.get(from) ?? []) {
      if (reachedFrom.has(target)) continue;
      reachedFrom.set(target, from);
      if (target === file) return traced(file, reachedFrom);
      open.push(target);
    }
  }
  return undefined;
}

function traced(file: string, reachedFrom: ReadonlyMap<string, string>): string[] {
  const way = [file];
  for (let at = reachedFrom.get(file) ?? file; at !== file; at = reachedFrom.get(at) ?? file) way.unshift(at);
  return [file, ...way];
}
