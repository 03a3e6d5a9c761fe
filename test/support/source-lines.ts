/**
 * Maps the lines of a stack to the source. Node can do that with --enable-source-maps, but then each access to `stack` costs ten times as
 * much, and Sequelize reads one for each SQLite query.
 */
import { existsSync, readFileSync } from 'node:fs';
import { type SourceMap, SourceMap as NodeSourceMap, type SourceMapPayload } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const maps = new Map<string, SourceMap | null>();

/** @returns the stack with `test/x.test.ts:3:5` in place of `dist/test/x.test.js:7:12`. Files that were not compiled stay. */
export function mapToSource(stack: string): string {
  return stack.replace(
    /((?:file:\/\/)?[^\s()]+\.js):(\d+):(\d+)/g,
    (text, file: string, line: string, column: string) => {
      const path = file.startsWith('file:') ? fileURLToPath(file) : resolve(file);
      const origin = mapOf(path)?.findOrigin(Number(line), Number(column));
      if (!origin || !('fileName' in origin)) return text;
      const source = resolve(path, '..', origin.fileName);
      return `${relative(process.cwd(), source)}:${origin.lineNumber}:${origin.columnNumber}`;
    },
  );
}

function mapOf(path: string): SourceMap | null {
  let map = maps.get(path);
  if (map === undefined) {
    map = existsSync(`${path}.map`)
      ? new NodeSourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as SourceMapPayload)
      : null;
    maps.set(path, map);
  }
  return map;
}
