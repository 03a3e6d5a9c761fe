/** Bundles the command line: see cli/bundle.ts. */
import { chmodSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

/** Packages that short commands load. They are small; others are loaded when a command needs them. */
const BUNDLED_PACKAGES = ['commander', 'picocolors', 'smol-toml', 'string-width'];

const LICENSES = ['commander/LICENSE', 'picocolors/LICENSE', 'smol-toml/LICENSE', 'string-width/license'];

/** What commands load only when they run and is not in the bundle. */
const SEPARATE = /^(?:cli\/manual|migrations|tui|daemon\/(?!api\/))/;

/** @param dist the folder with the compiled modules. @throws if a module cannot be bundled. */
export async function bundle(dist: string): Promise<void> {
  const outfile = join(dist, 'cli/llmp.cjs');
  const licenses = LICENSES.map((path) => readFileSync(join(dist, '../node_modules', path), 'utf8'));
  const notice = [...new Set(licenses)].join('\n').replaceAll('*/', '* /');
  const { warnings } = await build({
    entryPoints: [join(dist, 'cli/main.js')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20.19',
    sourcemap: 'linked',
    footer: {
      js: `/* Contains commander, picocolors, smol-toml, string-width and its dependencies, with these licenses:\n\n${notice}*/`,
    },
    define: { IS_BUNDLE: 'true', 'import.meta.dirname': '__dirname' },
    logLevel: 'warning',
    plugins: [
      {
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
      },
    ],
  });
  if (warnings.length > 0) throw new Error('the command line cannot be bundled: see the warnings');
  chmodSync(outfile, 0o755);
}
