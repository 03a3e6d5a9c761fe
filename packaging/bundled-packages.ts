/**
 * The packages that the build bundles into dist/node_modules, where the compiled modules find them before those in node_modules. They are
 * development dependencies: npm does not install them, their dependencies and their install scripts with llmp. The tests use them too.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

interface Bundled {
  /** The modules that llmp imports, as its package names them. */
  modules: readonly string[];
  /** It is written in CommonJS, so that its exports are known only after it is loaded. */
  isCommonJs?: boolean;
  /** Files that the package reads when it runs, relative to the module. */
  assets?: Readonly<Record<string, string>>;
}

/** sqlite3 is bundled too, in a way of its own. */
const PACKAGES: Readonly<Record<string, Bundled>> = {
  '@opentelemetry/api': { modules: ['.'] },
  '@opentelemetry/otlp-transformer': { modules: ['.'] },
  '@opentelemetry/resources': { modules: ['.'] },
  '@opentelemetry/sdk-metrics': { modules: ['.'] },
  ink: { modules: ['.'] },
  'jq-wasm': { modules: ['.'], assets: { 'dist/build/jq.wasm': 'build/jq.wasm' } },
  'lru-cache': { modules: ['.'] },
  react: { modules: ['.', './jsx-runtime'], isCommonJs: true },
  'react-dom': { modules: ['./server'], isCommonJs: true },
  zod: { modules: ['.'] },
};

/** The names of all packages in dist/node_modules. */
export const BUNDLED_PACKAGES: readonly string[] = [...Object.keys(PACKAGES), 'sqlite3'].sort();

/** The list of what was bundled, with the dependencies: see `Component`. */
export const COMPONENTS_FILE = '.components.json';

/** A package whose code is in dist/node_modules. */
export interface Component {
  name: string;
  version: string;
  license: string;
}

/** Ink imports it only for its developers. */
const EXTERNAL = ['react-devtools-core'];

const sharedIn = (root: string) =>
  ({
    bundle: true,
    // The names of files are in the bundles: they must not depend on the folder of the repository.
    absWorkingDir: root,
    preserveSymlinks: true,
    platform: 'node',
    target: 'node20.19',
    // Names of classes and functions stay as they are: they are in stack traces.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none', // The licenses are in a file.
    logLevel: 'warning',
    metafile: true,
  }) as const satisfies BuildOptions;

/**
 * Writes dist/node_modules, unless it is there for the same versions. @param root the folder of the repository. @throws if a package
 * cannot be bundled.
 */
export async function bundlePackages(root: string): Promise<void> {
  const target = join(root, 'dist/node_modules');
  const key = keyOf(root);
  const keyFile = join(target, '.key');
  if (existsSync(keyFile) && readFileSync(keyFile, 'utf8') === key) return;
  const folder = join(root, `dist/.node_modules-${process.pid}`);
  try {
    const metafiles = [await bundleModules(root, folder), await bundleSqlite(root, folder)];
    const folders = foldersIn(metafiles);
    const components = folders.map((path) => manifestOf(root, path));
    writeFileSync(join(folder, COMPONENTS_FILE), `${JSON.stringify(components, null, 2)}\n`);
    writeFileSync(join(folder, 'LICENSES.txt'), licensesOf(root, folders));
    writeFileSync(join(folder, '.key'), key);
    rmSync(target, { recursive: true, force: true });
    renameSync(folder, target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Changes with the versions of all packages, and with what this module and the loader of the native module do. */
function keyOf(root: string): string {
  const hash = createHash('sha256');
  const files = [import.meta.filename, join(root, NATIVE_LOADER), join(root, 'package-lock.json')];
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex');
}

async function bundleModules(root: string, folder: string): Promise<Metafile> {
  const entries = Object.entries(PACKAGES).flatMap(([name, { modules }]) =>
    modules.map((module) => ({ specifier: join(name, module), out: `${name}/${fileOf(module)}` })),
  );
  const { metafile } = await build({
    ...sharedIn(root),
    format: 'esm',
    entryPoints: entries.map(({ specifier, out }) => ({ in: `bundled:${specifier}`, out: out.replace(/\.js$/, '') })),
    outdir: folder,
    chunkNames: '.shared/[hash]',
    splitting: true,
    define: { 'process.env.NODE_ENV': '"production"' }, // React is larger and slower otherwise, and keeps measurements without limit.
    external: EXTERNAL,
    mainFields: ['module', 'main'], // Only modules are reduced to what is used.
    banner: { js: "import{createRequire as $require}from'node:module';const require=$require(import.meta.url);" },
    plugins: [entryPoints(root)],
  });
  for (const [name, { modules, assets = {} }] of Object.entries(PACKAGES)) {
    writeManifest(root, join(folder, name), name, {
      type: 'module',
      exports: Object.fromEntries(modules.map((module) => [module, `./${fileOf(module)}`])),
    });
    for (const [from, to] of Object.entries(assets))
      cpSync(join(root, 'node_modules', name, from), join(folder, name, to), { recursive: true });
  }
  return metafile;
}

const fileOf = (module: string) => (module === '.' ? 'index.js' : `${module.slice(2)}.js`);

/** An entry point exports what the module exports. */
const entryPoints = (root: string): Plugin => ({
  name: 'entry points',
  setup(bundling) {
    bundling.onResolve({ filter: /^bundled:/ }, ({ path }) => ({ path: path.slice(8), namespace: 'bundled' }));
    bundling.onLoad({ filter: /.*/, namespace: 'bundled' }, ({ path }) => {
      const what = isCommonJs(path) ? `{ ${namesIn(root, path).join(', ')} }` : '*';
      return { contents: `export ${what} from '${path}';`, resolveDir: root, loader: 'js' };
    });
  },
});

const isCommonJs = (specifier: string) =>
  Object.entries(PACKAGES).some(
    ([name, { isCommonJs = false }]) => isCommonJs && (specifier === name || specifier.startsWith(`${name}/`)),
  );

/** From the root: from here it would be the bundle of the last build. */
const namesIn = (root: string, specifier: string) =>
  Object.keys(createRequire(join(root, 'package.json'))(specifier) as object);

/** Loads the native module of the platform. It stands in for the package `bindings`, which searches the folders of a compilation. */
const NATIVE_LOADER = 'dist/daemon/store/sqlite-native.js';

async function bundleSqlite(root: string, folder: string): Promise<Metafile> {
  const { metafile } = await build({
    ...sharedIn(root),
    format: 'cjs',
    entryPoints: [join(root, 'node_modules/sqlite3/lib/sqlite3.js')],
    outfile: join(folder, 'sqlite3/index.js'),
    define: { 'import.meta.dirname': '__dirname' },
    plugins: [
      {
        name: 'native module',
        setup(bundling) {
          bundling.onLoad({ filter: /sqlite3-binding\.js$/ }, () => ({
            contents: `module.exports = require(${JSON.stringify(join(root, NATIVE_LOADER))}).loadNative();`,
            resolveDir: root,
          }));
        },
      },
    ],
  });
  writeManifest(root, join(folder, 'sqlite3'), 'sqlite3', { type: 'commonjs', main: './index.js' });
  return metafile;
}

/** The parts of a package's manifest that Node.js and scanners of installed software read. */
function writeManifest(root: string, folder: string, name: string, entry: object): void {
  const { version, license } = manifestOf(root, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name, version, license, ...entry }, null, 2)}\n`);
}

function manifestOf(root: string, path: string): Component {
  const text = readFileSync(join(root, 'node_modules', path, 'package.json'), 'utf8');
  const { name, version, license } = JSON.parse(text) as Component;
  return { name, version, license };
}

/** The folders, relative to node_modules, of the packages of all files in the bundles. */
function foldersIn(metafiles: readonly Metafile[]): string[] {
  const folders = metafiles.flatMap(({ inputs }) => Object.keys(inputs)).map(packageOf);
  return [...new Set(folders.filter((folder) => folder !== null))].sort();
}

/** The folder of the package that contains a file, relative to node_modules. */
function packageOf(file: string): string | null {
  const [, path = ''] = /(?:^|\/)node_modules\/(.*)/.exec(file) ?? [];
  return /^((?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? null;
}

/** The licenses of all packages in the bundles, which most of them require to be shipped. */
function licensesOf(root: string, folders: readonly string[]): string {
  return folders
    .map((folder) => {
      const { name, version, license } = manifestOf(root, folder);
      const path = join(root, 'node_modules', folder);
      const files = readdirSync(path).filter((file) => /^(?:licen[cs]e|notice)\b/i.test(file));
      const texts = files.sort().map((file) => readFileSync(join(path, file), 'utf8').trim());
      return [`${name} ${version} (${license})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`)
    .concat('\n');
}
