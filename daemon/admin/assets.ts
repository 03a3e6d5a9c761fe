import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';

// The source folder: the compiled file is in dist/daemon/admin.
const FOLDER = join(import.meta.dirname, '../../../daemon/admin/assets');

const TYPES = { css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' } as const;

/** Paths of the assets, relative to the base. */
export interface Assets {
  style: string;
  /** In this order: the second uses functions of the first. */
  scripts: readonly string[];
  icon: string;
}

interface Asset {
  /** Contains a hash of the bytes, so that browsers can cache the file indefinitely. */
  name: string;
  type: string;
  bytes: Buffer;
}

function read(name: string, extension: keyof typeof TYPES): Asset {
  const bytes = readFileSync(join(FOLDER, `${name}.${extension}`));
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 12);
  return { name: `${name}-${digest}.${extension}`, type: `${TYPES[extension]}; charset=utf-8`, bytes };
}

/** Serves these files from memory. The path of a request is never used as a file path. */
export function assetRoutes(): { assets: Assets; routes: RequestHandler } {
  const style = read('admin', 'css');
  const scripts = [read('admin', 'js'), read('live', 'js')];
  const icon = read('icon', 'svg');
  const router = Router({ caseSensitive: true, strict: true });
  for (const { name, type, bytes } of [style, ...scripts, icon]) {
    router.get(`/assets/${name}`, (_req, res) => {
      res.set({ 'Content-Type': type, 'Cache-Control': 'public, max-age=31536000, immutable' });
      res.end(bytes);
    });
  }
  const at = ({ name }: Asset) => `assets/${name}`;
  return { assets: { style: at(style), scripts: scripts.map(at), icon: at(icon) }, routes: router };
}
