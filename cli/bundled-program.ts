/**
 * Loads the bundle with V8's code cache, so that Node.js does not compile it at each start. The build writes the cache beside the bundle,
 * for its own version of Node.js. Another version does not use it: it compiles the bundle.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Script } from 'node:vm';

type Program = (
  exports: object,
  require: (id: string) => unknown,
  module: object,
  filename: string,
  dirname: string,
  importModule: (id: string) => Promise<unknown>,
) => void;

/**
 * The path of the code cache of a bundle. V8 compares only the length of the source, so the path of a bundle has to contain a hash of its
 * content. V8 rejects the cache of another version or other options of V8.
 */
export const codeCacheOf = (bundle: string) =>
  `${bundle.replace(/\.cjs$/, '')}-${process.versions.v8}-${process.arch}.cache`;

/** What the file of a bundle contains: its modules as the function that `start` calls. */
export const functionOf = (code: string) =>
  `(function (exports, require, module, __filename, __dirname, importModule) {${code}\n})\n`;

/** @param cachedData the content of the code cache, if there is one. @param bundle ASCII only; see `functionOf`. */
export function scriptOf(bundle: string, cachedData: Buffer | undefined, filename = bundle): Script {
  return new Script(readFileSync(bundle, 'latin1'), { filename, ...(cachedData && { cachedData }) });
}

/**
 * Runs the program. `require` and `importModule` are those of the file that starts it: Node.js 20 supports no `import()` in a script from a
 * code cache.
 */
export function start(
  script: Script,
  bundle: string,
  require: NodeJS.Require,
  importModule: (id: string) => Promise<unknown>,
): void {
  const program = script.runInThisContext() as Program;
  const load = (id: string): unknown => (id.startsWith('node:') ? whenUsed(id, require) : require(id));
  program({}, load, { exports: {} }, bundle, dirname(bundle), importModule);
}

/** A module of Node.js that is loaded when one of its exports is used: a short command uses few of them. */
function whenUsed(id: string, require: NodeJS.Require): object {
  return new Proxy({}, { get: (_, name) => (require(id) as Record<PropertyKey, unknown>)[name] });
}

/** @returns undefined without a readable cache for this version of Node.js. */
export function readCodeCache(bundle: string): Buffer | undefined {
  try {
    return readFileSync(codeCacheOf(bundle));
  } catch {
    return undefined;
  }
}
