import { join } from 'node:path';

/** The folder of the package, which contains package.json. The compiled file is in dist/config, the bundle in dist/cli. */
export function packageRoot(): string {
  return join(import.meta.dirname, '../..');
}
