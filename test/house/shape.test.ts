import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../../..');

/** What each folder may import: our own folders and files, and packages. Node's own modules are permitted unless `node` restricts them. */
const MAY_IMPORT: Record<string, { folders: string[]; packages: string[]; node?: string[] }> = {
  config: { folders: ['config'], packages: [] },
  migrations: { folders: ['migrations'], packages: ['sequelize'] },
  // The vocabulary has only words and limits, permissions what each role may do, money the arithmetic of amounts, and request-outcome the words for
  // causes. The core and its clients share them.
  'daemon/core': {
    folders: [
      'daemon/core',
      'daemon/api/vocabulary',
      'daemon/api/permissions',
      'daemon/api/money',
      'daemon/api/request-outcome',
    ],
    packages: [],
    node: ['node:buffer', 'node:crypto', 'node:zlib'],
  }, // Of node:zlib only crc32.
  'daemon/api': { folders: ['daemon/api'], packages: ['zod'], node: [] },
  'daemon/store': {
    folders: ['daemon/store', 'daemon/core', 'daemon/api/money', 'daemon/api/vocabulary', 'config'],
    packages: ['sequelize', 'sqlite3', 'ioredis', 'lru-cache'], // Sequelize loads pg and mysql2.
  },
  'daemon/http': {
    folders: ['daemon/http', 'daemon/core', 'daemon/api', 'daemon/oidc/bounded-fetch', 'daemon/oidc/log-ins', 'config'],
    packages: ['express', 'undici', 'http-proxy', 'jose', 'zod'],
  },
  'daemon/oidc': {
    folders: ['daemon/oidc', 'daemon/core', 'daemon/api/schemas/access', 'daemon/api/vocabulary', 'config'],
    packages: ['openid-client', 'undici', 'zod'],
  },
  'daemon/process': {
    folders: ['daemon/process', 'daemon/core', 'daemon/api/vocabulary', 'config'],
    packages: ['winston'],
  },
  'daemon/ops': {
    folders: [
      'daemon/ops',
      'daemon/core',
      'daemon/api/formats',
      'daemon/api/vocabulary',
      'daemon/store',
      'daemon/process',
      'daemon/http/proxy/upstream-tunnel', // Doctor reaches the provider as the daemon does, and reads keys and roles as it does.
      'daemon/http/exchange',
      'daemon/oidc',
      'config',
      'migrations',
    ],
    packages: [],
  },
  'daemon/dispatcher': {
    folders: [
      'daemon/dispatcher',
      'daemon/core',
      'daemon/store',
      'daemon/process',
      'daemon/http/server/memory-bounds', // Its listener has the same limits as the daemon's.
      'daemon/http/server/server',
      'config',
    ],
    packages: ['undici', 'prom-client', '@opentelemetry'],
  },
  'daemon/admin': {
    folders: [
      'daemon/admin',
      'daemon/api',
      'daemon/core/ports',
      'daemon/core/sealing',
      'daemon/process',
      'daemon/http/client-identity',
      'daemon/http/small-body',
      'daemon/http/server/app',
      'daemon/http/server/memory-bounds', // Its listener has the same limits as the daemon's.
      'daemon/http/server/server',
      'config',
      'console/columns',
      'console/problems',
      'console/query',
      'console/span',
    ],
    packages: ['express', 'helmet', 'react', 'react-dom'],
  },
  'daemon/admin/parts': {
    folders: ['daemon/admin/parts', 'daemon/api', 'console/columns', 'console/query'],
    packages: ['react'],
    node: [],
  },
  'daemon/admin/pages': {
    folders: ['daemon/admin', 'daemon/api', 'console/columns', 'console/problems', 'console/query'],
    packages: ['express', 'react'],
    node: [],
  },
  'daemon/metrics': {
    folders: ['daemon/metrics', 'daemon/core', 'daemon/api/money', 'daemon/api/vocabulary'],
    packages: ['prom-client'],
  },
  // Each builder knows one side: the stores, or HTTP. See "only the composition knows both" below.
  'daemon/compose': {
    folders: [
      'daemon/compose',
      'daemon/core',
      'daemon/store',
      'daemon/http',
      'daemon/metrics',
      'daemon/oidc',
      'daemon/admin/mount',
      'daemon/process',
      'config',
      'migrations',
    ],
    packages: [],
    node: [],
  },
  'daemon/demo': {
    folders: [
      'daemon/demo',
      'daemon/api',
      'daemon/compose',
      'daemon/process',
      'daemon/core',
      'daemon/http/problems', // The status and code of a refusal in the past.
      'config',
    ],
    packages: ['ws'],
  },
  // What the CLI and the terminal UI share, so that neither has to import the other.
  console: { folders: ['console', 'daemon/api'], packages: ['picocolors', 'string-width'] },
  // The Admin UI has the same columns, so they import nothing that it may not.
  'console/columns': { folders: ['console/columns', 'console/bars', 'daemon/api'], packages: [], node: [] },
  cli: {
    folders: ['cli', 'console', 'daemon/api', 'config'],
    packages: ['commander', 'inquirer', 'jq-wasm', 'picocolors', 'undici', 'smol-toml', 'yaml'],
  },
  tui: {
    folders: ['tui', 'console', 'daemon/api', 'config'],
    packages: ['ink', 'react', 'string-width', 'lru-cache', 'smol-toml'],
  },
  'tui/settings': {
    folders: [
      'tui/settings',
      'tui/state',
      'tui/keys',
      'tui/parts',
      'tui/terminal/key-names',
      'console/escape',
      'console/failure',
      'config/nearest',
      'console/own-file',
    ],
    packages: ['smol-toml'],
    node: ['node:fs/promises', 'node:path'],
  },
  'tui/state': {
    folders: [
      'tui/state',
      'daemon/api',
      'config',
      'console/columns',
      'console/problems',
      'console/escape',
      'console/query',
      'console/fuzzy',
      'console/span',
      'console/table-format',
    ],
    packages: [],
    node: ['node:util'],
  },
  'tui/keys': {
    folders: [
      'tui/keys',
      'tui/state',
      'console/columns',
      'console/escape',
      'console/failure',
      'console/fuzzy',
      'config/nearest',
      'console/query',
      'daemon/api/top-words',
      'daemon/api/vocabulary',
    ],
    packages: [],
    node: [],
  },
  'tui/effects': {
    folders: [
      'tui/effects',
      'tui/state',
      'daemon/api',
      'console/columns',
      'console/failure',
      'console/query',
      'console/reported-user',
      'console/table-file',
      'console/table-format',
    ],
    packages: ['lru-cache'],
  },
  'tui/terminal': { folders: ['tui/terminal', 'console/terminal-io'], packages: ['string-width'] },
  'tui/parts': {
    folders: [
      'tui/parts',
      'tui/state',
      'daemon/api',
      'console/bars',
      'console/column-widths',
      'console/columns',
      'console/escape',
    ],
    packages: ['ink', 'react', 'string-width'],
    node: [],
  },
  'tui/chrome': {
    folders: ['tui/chrome', 'tui/parts', 'tui/keys', 'tui/state', 'daemon/api', 'console/columns'],
    packages: [],
    node: [],
  },
  'tui/layers': {
    folders: ['tui/layers', 'tui/parts', 'tui/keys', 'tui/state', 'daemon/api', 'console/columns'],
    packages: ['ink'],
    node: [],
  },
  'tui/screens': {
    folders: ['tui/screens', 'tui/parts', 'tui/keys', 'tui/state', 'daemon/api', 'console/columns', 'console/problems'],
    packages: ['ink'],
    node: [],
  },
};

/** What a CLI command may load when it runs, never at its start. */
const LOADED_WHEN_RUN =
  /^(?:daemon\/(?:main|dispatcher\/main|admin\/main|ops\/[\w-]+|demo\/demo)|tui\/(?:start|once|(?:terminal|settings)\/[\w-]+))\.js$/;

interface Import {
  file: string;
  specifier: string;
  /** The path from the root, for one of our files. */
  target: string | null;
  isDynamic: boolean;
  /** Types only: nothing of it is loaded when the program runs. */
  isOfTypes: boolean;
}

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file));
}

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

function importsOf(file: string): Import[] {
  const text = textOf(file);
  return ts.preProcessFile(text).importedFiles.map(({ fileName: specifier }) => ({
    file,
    specifier,
    target: specifier.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(file), specifier)) : null,
    isOfTypes: new RegExp(`import type [^;]*'${specifier.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}'`).test(text),
    isDynamic: new RegExp(`import\\(\\s*'${specifier.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}'`).test(text),
  }));
}

const isIn = (path: string, folder: string) => path.startsWith(`${folder}/`);
const isTarget = (target: string, may: string) => target === `${may}.js` || isIn(target, may);
const isOfPackage = (specifier: string, may: string) => specifier === may || specifier.startsWith(`${may}/`);

/** What each file imports, by their paths. */
type Imports = ReadonlyMap<string, readonly string[]>;

/**
 * For every file that can be reached from itself: one shortest cycle, such as `a -> b -> a`. The files of a cycle are reported once, so
 * fixing it may reveal another one that it hid.
 */
function findCycles(imports: Imports): string[] {
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

describe('the shape of the code', () => {
  for (const [folder, allowed] of Object.entries(MAY_IMPORT)) {
    it(`${folder} imports only what it may`, () => {
      const files = sources(folder);
      expect(files).not.to.be.empty;
      const forbidden = files.flatMap(importsOf).filter(({ file, specifier, target, isDynamic, isOfTypes }) => {
        if (target !== null) {
          if (folder === 'cli' && isIn(target, 'tui') && isOfTypes) return false;
          // The manual is made when the program is built.
          if (isIn(file, 'cli/manual') && isIn(target, 'tui/keys')) return false;
          if (folder === 'cli' && LOADED_WHEN_RUN.test(target)) return !isDynamic && !isOfTypes;
          return !allowed.folders.some((may) => isTarget(target, may));
        }
        if (specifier.startsWith('node:')) return allowed.node !== undefined && !allowed.node.includes(specifier);
        return !allowed.packages.some((may) => isOfPackage(specifier, may));
      });
      expect(forbidden.map(({ file, specifier }) => `${file} imports ${specifier}`)).to.deep.equal([]);
    });

    it(`${folder} uses everything that it may import`, () => {
      const imports = sources(folder).flatMap(importsOf);
      const unused = [
        // A folder may import itself, even if it has no reason to.
        ...allowed.folders.filter(
          (may) => may !== folder && !imports.some(({ target }) => isTarget(target ?? '', may)),
        ),
        ...allowed.packages.filter((may) => !imports.some(({ specifier }) => isOfPackage(specifier, may))),
        ...(allowed.node ?? []).filter((may) => !imports.some(({ specifier }) => specifier === may)),
      ];
      expect(unused).to.deep.equal([]);
    });
  }

  // Types count, and so do imports that are made only when needed: two files that can only be understood through each other are one file in
  // two places. Anything that would close a cycle is passed in, like the table of commands to the commands.
  it('no file imports itself, directly or through others, including types', () => {
    const files = ['config', 'migrations', 'daemon', 'console', 'cli', 'tui'].flatMap(sources);
    // An import names its target as it is called after compilation.
    const compiled = (file: string) => file.replace(/\.tsx?$/, '.js');
    const imports = files.map((file) => {
      const targets = importsOf(file).flatMap(({ target }) => target ?? []);
      return [compiled(file), targets] as const;
    });
    expect(findCycles(new Map(imports))).to.deep.equal([]);
  });

  it('only the composition knows both the stores and HTTP', () => {
    const together = sources('daemon').filter((file) => {
      const targets = importsOf(file).map(({ target }) => target ?? '');
      return targets.some((it) => isIn(it, 'daemon/store')) && targets.some((it) => isIn(it, 'daemon/http'));
    });
    expect(together).to.deep.equal(['daemon/compose.ts']);
  });

  it('time is read only from a clock that is passed in', () => {
    const readsTheTime = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bset(?:Timeout|Interval)\(/;
    const offenders = ['daemon/core', 'daemon/store', 'daemon/http', 'daemon/oidc'].flatMap(sources);
    expect(offenders.filter((file) => readsTheTime.test(textOf(file)))).to.deep.equal([]);
  });

  it('only main files read the environment and end the process', () => {
    const files = ['config', 'daemon', 'migrations', 'console', 'cli'].flatMap(sources);
    const touching = files.filter((file) => /\bprocess\.(?:env|exit|exitCode)\b/.test(textOf(file)));
    // The terminal ends the process that a main file passes to it.
    const others = touching.filter((file) => !file.endsWith('/main.ts') && file !== 'console/terminal-io.ts');
    expect(others).to.deep.equal([]);
  });

  it('snake_case is used only in wire shapes and SQL', () => {
    const identifier = /(?<![\w'"`$.-])[a-z]+_[a-z_]+(?=\s*[:=(])/;
    const offenders = sources('daemon/core').filter((file) =>
      textOf(file)
        .split('\n')
        .some((line) => identifier.test(line.replace(/\/\/.*|^\s*\*.*/, ''))),
    );
    // The details of an audit record are a wire shape that is stored as it is; messages of and to the provider have its names.
    const content = ['streamed-message', 'stream-options'].map((name) => `daemon/core/content/${name}.ts`);
    const ofDetails = ['batches', 'operators', 'project-drafts', 'registry', 'trusts'].map(
      (name) => `daemon/core/${name}.ts`,
    );
    const ofRequests = ['policy/json-models', 'budget/bound', 'budget/bounded-members'];
    const wireShapes = [...ofDetails, ...content, ...ofRequests.map((name) => `daemon/core/${name}.ts`)];
    expect(offenders.filter((file) => !wireShapes.includes(file))).to.deep.equal([]);
  });
});
