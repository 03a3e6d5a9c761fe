/** `OIDC_ROLES`: which role people have, by the claims of the identity provider. docs/operators.md describes the file. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import * as z from 'zod';
import { SettingsError } from '../../config/settings.js';
import { readTextFile, whyUnreadable } from '../../config/text-file.js';
import { ceilings } from '../api/schemas/access.js';
import { type Ceilings, type Role, ROLES, UUID_PATTERN } from '../api/vocabulary.js';
import { jsonNode, JsonSyntaxError } from '../core/cost/json-lines.js';

/** What the identity provider says of a person. */
export type Claims = Readonly<Record<string, unknown>>;

export interface RoleRow {
  /** The claims that a person must have, with their values. */
  match: Readonly<Record<string, string>>;
  role: Role;
  /** IDs; null: all projects. */
  projects: string[] | null;
  /** Null: none. */
  ceilings: Ceilings | null;
}

export interface RoleMapping {
  /** Of the file and the issuer, in hex. Sessions that began with another one have ended. */
  sha256: string;
  /** The first that matches counts. */
  rows: readonly RoleRow[];
}

const MAX_BYTES = 1024 * 1024;
const MAX_ROWS = 1_000;
const MAX_CLAIMS = 20;
const MAX_PROJECTS = 200;
const MAX_PROBLEMS = 10;

const row = z.strictObject({
  match: z
    .record(z.string().min(1).max(200), z.string().min(1).max(500))
    .refine((match) => Object.keys(match).length > 0 && Object.keys(match).length <= MAX_CLAIMS)
    .describe(`an object with 1 to ${MAX_CLAIMS} claims and their values, which are texts`),
  role: z.enum(ROLES).describe(`one of ${ROLES.join(', ')}`),
  projects: z
    .array(z.string().regex(UUID_PATTERN).toLowerCase())
    .min(1)
    .max(MAX_PROJECTS)
    .nullable()
    .default(null)
    .describe(`a list of 1 to ${MAX_PROJECTS} IDs of projects, or null for all projects`),
  ceilings: ceilings.nullable().default(null).describe('an object as for an operator, or null for none'),
});

/**
 * Reads the file.
 *
 * @param path null: there is no file.
 * @param issuer the setting OIDC_ISSUER; undefined: people do not log in, and the file is not read.
 * @throws {SettingsError} that names the rows and members that are wrong.
 */
export function readRoleMapping(path: string | null, issuer: string | undefined): RoleMapping | null {
  if (path === null || issuer === undefined) return null;
  let text: string;
  try {
    if (statSync(path).size > MAX_BYTES) throw new SettingsError(['OIDC_ROLES: is larger than 1 MiB']);
    text = readTextFile(path);
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    throw new SettingsError([`OIDC_ROLES: cannot read ${path}: ${whyUnreadable(error)}`]);
  }
  const { rows, problems } = rowsIn(text);
  if (problems.length > 0) {
    throw new SettingsError(problems.slice(0, MAX_PROBLEMS).map((problem) => `OIDC_ROLES: ${path}, ${problem}`));
  }
  // The same row may match other people at another issuer.
  const sha256 = createHash('sha256')
    .update(JSON.stringify([issuer, text]))
    .digest('hex');
  return { sha256, rows };
}

function rowsIn(text: string): { rows: RoleRow[]; problems: string[] } {
  const refused = (problem: string) => ({ rows: [], problems: [problem] });
  try {
    jsonNode(text); // It names the line of an error, and refuses members that are repeated.
  } catch (error) {
    if (error instanceof JsonSyntaxError) return refused(`line ${error.line}: ${error.message}`);
    throw error;
  }
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_ROWS) {
    return refused(`the file must contain a list of 1 to ${MAX_ROWS} rows: [{"match": {"claim": "value"}, "role": …}]`);
  }
  const checked = list.map((each: unknown) => row.safeParse(each));
  return {
    rows: checked.flatMap(({ data }) => data ?? []),
    problems: checked.flatMap(({ error }, index) =>
      (error?.issues ?? []).map((issue) => `row ${index + 1}: ${problemIn(issue, list[index])}`),
    ),
  };
}

function problemIn(issue: z.core.$ZodIssue, given: unknown): string {
  const [member] = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return `${issue.keys.map((key) => [...issue.path, key].join('.')).join(', ')} is not known`;
  }
  if (member === undefined) return 'it must be an object with match and role';
  if (!Object.hasOwn(given as object, member)) return `${member} is missing`;
  // Only ceilings have members of their own.
  const name = member === 'ceilings' ? issue.path.join('.') : member;
  const accepted = name === member ? acceptedBy(row, name) : acceptedBy(ceilings, name.slice('ceilings.'.length));
  return accepted === null ? `${name} is not valid` : `${name} must be ${accepted}`;
}

/** @returns what a member may be; null if its description does not complete a sentence with "must be". */
function acceptedBy({ shape }: z.ZodObject, member: string): string | null {
  const declared = (shape as Record<string, z.ZodType | undefined>)[member];
  const schema = declared instanceof z.ZodOptional ? (declared.unwrap() as z.ZodType) : declared;
  const description = schema?.description ?? '';
  return /^(?:an?|one) /.test(description) ? description : null;
}

/** @returns the first row that matches; null if none does. */
export const roleFor = ({ rows }: RoleMapping, claims: Claims): RoleRow | null =>
  rows.find(({ match }) => Object.entries(match).every(([claim, value]) => has(claims, claim, value))) ?? null;

function has(claims: Claims, claim: string, value: string): boolean {
  // Anybody may claim an address that nobody verified. Some providers write it as a text. Those that do not write it at all let people change it.
  if (claim === 'email' && claims.email_verified !== true && claims.email_verified !== 'true') return false;
  const given: unknown = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  return Array.isArray(given) ? given.includes(value) : given === value;
}
