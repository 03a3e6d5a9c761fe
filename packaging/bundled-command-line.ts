/** Bundles the command line: see cli/program.ts. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { codeCacheOf, functionOf } from '../cli/bundled-program.js';

/** Packages that short commands load. They are small; others are loaded when a command needs them. */
const BUNDLED_PACKAGES = ['commander', 'picocolors', 'smol-toml', 'string-width'];

const LICENSES = ['commander/LICENSE', 'picocolors/LICENSE', 'smol-toml/LICENSE', 'string-width/license'];

/** What commands load only when they run and is not in the bundle. */
const SEPARATE = /^(?:cli\/manual|migrations|tui|daemon\/(?!api\/))/;

const SHARED = {
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  // Fewer bytes to read. Names stay: errors show them.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160, // Node.js prints the whole line of an error that nothing catches.
  charset: 'ascii', // Text in another encoding takes longer to read.
  logLevel: 'warning',
  write: false,
  preserveSymlinks: true,
} as const satisfies BuildOptions;

/**
 * Writes dist/cli/llmp.cjs, which starts the bundle, the bundle itself and its code cache. The names of the latter contain a hash, so that
 * a program never reads files of two builds, even while a build runs.
 *
 * @param dist the folder with the compiled modules. @throws if a module cannot be bundled.
 */
export async function bundle(dist: string): Promise<void> {
  const folder = join(dist, 'cli');
  const earlier = readdirSync(folder).filter((name) => /^llmp[-.].*\.(?:cjs|map|cache)$/.test(name));
  const [output = '', map = ''] = await outputsOf(dist, {
    ...SHARED,
    entryPoints: [join(folder, 'main.js')],
    outfile: join(folder, 'llmp.cjs'),
    sourcemap: 'external',
    footer: { js: noticeIn(dist) },
    define: { IS_BUNDLE: 'true', 'import.meta.dirname': '__dirname' },
    plugins: [separately(dist)],
  });
  // A module of Node.js that is loaded when it is used has no list of its exports, which such an import would copy.
  if (output.includes('__toESM(require("node:')) throw new Error('import the exports of a module of Node.js by name');
  // The bundler escapes other characters, except in regular expressions.
  const code = output
    .replace(/^#!.*/, '')
    .replaceAll(/\bimport\(/g, 'importModule(') // See `start`.
    .replace(/[^\0-\x7f]/g, escaped);
  const name = `llmp-${createHash('sha256').update(code).digest('hex').slice(0, 16)}`;
  const program = join(folder, `${name}.cjs`);
  replace(join(folder, `${name}.cjs.map`), map);
  replace(program, functionOf(`${code}//# sourceMappingURL=${name}.cjs.map`));
  const isCached = cacheCode(program);

  const [starting = ''] = await outputsOf(dist, {
    ...SHARED,
    entryPoints: [join(folder, 'start.js')],
    outfile: join(folder, 'llmp.cjs'),
    define: { BUNDLE: JSON.stringify(`${name}.cjs`), 'import.meta.dirname': '__dirname' },
  });
  replace(join(folder, 'llmp.cjs'), starting, 0o755);
  const current = [program, `${program}.map`, ...(isCached ? [codeCacheOf(program)] : [])];
  // Another build at the same time may remove them too.
  for (const file of earlier.map((each) => join(folder, each)))
    if (!current.includes(file)) rmSync(file, { force: true });
}

/** The names of files are in the bundle: they must not depend on the folder of the repository. */
async function outputsOf(dist: string, options: BuildOptions): Promise<string[]> {
  const { warnings, outputFiles = [] } = await build({ ...options, absWorkingDir: resolve(dist, '..') });
  if (warnings.length > 0) throw new Error('the command line cannot be bundled: see the warnings');
  return outputFiles.toSorted((one, other) => one.path.length - other.path.length).map(({ text }) => text);
}

/** The licenses of the packages in the bundle, in ASCII. */
function noticeIn(dist: string): string {
  const licenses = LICENSES.map((path) => readFileSync(join(dist, '../node_modules', path), 'utf8'));
  const text = [...new Set(licenses)].join('\n').replaceAll('*/', '* /').replaceAll('\u00a9', '(c)');
  return `/* Contains commander, picocolors, smol-toml, string-width and its dependencies, with these licenses:\n\n${text}*/\n`;
}

const separately = (dist: string): Plugin => ({
  name: 'separate',
  setup(bundling) {
    bundling.onResolve({ filter: /^[^./]/ }, ({ path, importer }) => {
      const isBundled = BUNDLED_PACKAGES.includes(path) || importer.includes('node_modules');
      return isBundled ? undefined : { path, external: true };
    });
    bundling.onResolve({ filter: /^\.\.?\// }, ({ path, kind, resolveDir }) => {
      const target = relative(dist, resolve(resolveDir, path));
      if (kind !== 'dynamic-import' || !SEPARATE.test(target)) return undefined;
      return { path: `../${target}`, external: true };
    });
  },
});

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

function replace(path: string, content: string, mode = 0o644): void {
  const written = `${path}.${process.pid}`;
  writeFileSync(written, content);
  chmodSync(written, mode);
  renameSync(written, path);
}

/**
 * So the same program has the same cache: the seed is constant, and V8 does nothing in parallel and drops no function that was not called
 * for a while. See code-cache.ts.
 */
const CACHE_OPTIONS = ['--predictable', '--hash-seed=1', '--no-flush-bytecode'];

/**
 * Writes the code cache of a bundle beside it, for one release and architecture of Node.js.
 *
 * @param node the command that runs this Node.js. @returns false if the code cache could not be created: the program then starts without it.
 */
export function cacheCode(
  program: string,
  [command, ...options]: readonly [string, ...string[]] = [process.execPath],
): boolean {
  const args = [...options, ...CACHE_OPTIONS, join(import.meta.dirname, 'code-cache.js'), program];
  // Whether there are colours depends on the environment and on what standard error is, so these are the same for every build.
  const { status, stderr } = spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH },
    timeout: 300_000, // An emulator takes ten times as long.
  });
  if (status !== 0)
    console.error(`${String(stderr)}warning: no code cache for the command line; it will start more slowly`);
  return status === 0;
}
