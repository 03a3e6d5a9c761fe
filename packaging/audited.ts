/**
 * Reads what `npm audit --json` found from standard input, prints the findings of severity high or critical in what is shipped: packages
 * that npm installs with llmp, and packages whose code is in the bundles. Exits with 1 if there are any. `npm audit --omit=dev` does
 * not know the latter, which are development dependencies.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Component, COMPONENTS_FILE } from './bundled-packages.js';
import { productionDependencies } from './stage.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** What npm says of a package. */
interface Vulnerability {
  name: string;
  severity: string;
  /** Where it is installed, such as `node_modules/pg`. */
  nodes: readonly string[];
}

export interface AuditReport {
  vulnerabilities?: Readonly<Record<string, Vulnerability>>;
}

/** @returns the vulnerabilities that matter, one line each. @param paths where npm installs packages. @param bundled names. */
export function shippedVulnerabilities(
  { vulnerabilities = {} }: AuditReport,
  paths: ReadonlySet<string>,
  bundled: ReadonlySet<string>,
): string[] {
  return Object.values(vulnerabilities)
    .filter(({ severity }) => severity === 'high' || severity === 'critical')
    .filter(({ name, nodes }) => bundled.has(name) || nodes.some((path) => paths.has(path)))
    .map(({ name, severity }) => `${name}: ${severity}`);
}

/** The packages whose code is in dist/node_modules. @throws before the first build. */
export function bundledComponents(root = ROOT): Component[] {
  return JSON.parse(readFileSync(join(root, 'dist/node_modules', COMPONENTS_FILE), 'utf8')) as Component[];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = shippedVulnerabilities(
    JSON.parse(readFileSync(0, 'utf8')) as AuditReport,
    new Set(productionDependencies().map(({ path }) => path)),
    new Set(bundledComponents().map(({ name }) => name)),
  );
  for (const line of found) console.log(line);
  process.exit(found.length > 0 ? 1 : 0);
}
