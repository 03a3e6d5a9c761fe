/** Circles of files: what imports itself, in one step or by way of others. */

/** What each file imports, by their paths. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/**
 * For every file that can be reached from itself: one shortest way round, such as `a -> b -> a`. Files of one circle are told
 * once, so mending what is told may show another that was hidden by it.
 */
export function circlesIn(imports: Imports): string[] {
  const told = new Set<string>();
  return [...imports.keys()].sort().flatMap((file) => {
    if (told.has(file)) return [];
    const way = wayBack(file, imports);
    if (!way) return [];
    for (const passed of way) told.add(passed);
    return [way.join(' -> ')];
  });
}

/** @returns the files on the shortest way from `file` to itself, both ends included; undefined when there is none. */
function wayBack(file: string, imports: Imports): string[] | undefined {
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
