/** Doctor checks of what people and JWTs need: the identity provider, the roles, and the public keys of issuers. */
import { readdir } from 'node:fs/promises';
import type { AllSettings } from '../../config/settings.js';
import { SettingsError } from '../../config/settings.js';
import { counted } from '../api/formats.js';
import { Refusal } from '../core/refusal.js';
import { DocumentUnavailable } from '../http/exchange/documents.js';
import { readKeyFile, usableKeysIn } from '../http/exchange/issuer-keys.js';
import { readRoleMapping, type RoleMapping } from '../oidc/role-mapping.js';
import { realClock } from '../process/clock.js';
import {
  type CheckGroup,
  checksWith,
  codeOf,
  type DoctorContext,
  failed,
  type Finding,
  ok,
  skipped,
  validSettings,
  warning,
} from './doctor-finding.js';

const OF_PROVIDER = ['oidcIssuer', 'oidcClientId', 'oidcClientSecret', 'upstreamProxy', 'upstreamProxyBypass'] as const;

/** Whether people can begin to log in: that the provider takes the client secret only shows when somebody does. */
export const logInChecks = (context: DoctorContext): CheckGroup => checksWith('log-in', context, OF_PROVIDER, logIn);

async function* logIn({
  oidcIssuer: issuer,
  oidcClientId: clientId = '',
  oidcClientSecret: clientSecret = '',
  upstreamProxy: proxy,
  upstreamProxyBypass: proxyBypass,
}: Pick<AllSettings, (typeof OF_PROVIDER)[number]>): AsyncGenerator<Finding> {
  if (issuer === undefined) {
    yield skipped('log-in', 'people do not log in with an identity provider (OIDC_ISSUER is not set)');
    return;
  }
  const { IdentityProvider } = await import('../oidc/identity-provider.js');
  const log = { info: () => undefined, warn: () => undefined };
  const provider = new IdentityProvider({ issuer, clientId, clientSecret, proxy, proxyBypass, clock: realClock, log });
  try {
    const hasDevices = await provider.supportsDevices();
    yield ok(
      'log-in',
      `${issuer} has a configuration${hasDevices ? '' : '; without device_authorization_endpoint, so people log in to the Admin UI only'}`,
    );
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const at = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    yield failed('log-in', `${issuer}: ${error.message}`, `Compare OIDC_ISSUER with: curl -sS ${at}`);
  }
}

/** @returns null if people do not log in, or if the file is wrong, which the check `roles` reports. */
function mappingIn(context: DoctorContext): RoleMapping | SettingsError | null {
  const settings = validSettings(context, ['oidcRoles', 'oidcIssuer']);
  try {
    return settings && readRoleMapping(settings.oidcRoles, settings.oidcIssuer);
  } catch (error) {
    if (error instanceof SettingsError) return error;
    throw error;
  }
}

export function roleChecks(context: DoctorContext): CheckGroup {
  return { check: 'roles', run: () => roles(context) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- has the type of the other checks
async function* roles(context: DoctorContext): AsyncGenerator<Finding> {
  const mapping = mappingIn(context);
  const advice = 'Correct the file. Until then, a start of the daemon fails, and SIGHUP keeps the roles in force';
  if (mapping instanceof SettingsError) for (const each of mapping.problems) yield failed('roles', each, advice);
  else if (mapping) yield ok('roles', `OIDC_ROLES has ${counted(mapping.rows.length, 'row')}`);
}

export const keyFileChecks = (context: DoctorContext): CheckGroup =>
  checksWith('public keys', context, ['jwksFolder'], keyFiles);

async function* keyFiles({ jwksFolder: folder }: Pick<AllSettings, 'jwksFolder'>): AsyncGenerator<Finding> {
  if (folder === undefined) return;
  let names: string[];
  try {
    // A mounted ConfigMap has its files in hidden folders, and links to them.
    names = (await readdir(folder)).filter((name) => !name.startsWith('.'));
  } catch (error) {
    yield failed('public keys', `cannot read JWKS_DIR ${folder}: ${codeOf(error)}`, `Check: ls -ld ${folder}`);
    return;
  }
  if (names.length === 0) yield warning('public keys', `there are no files in JWKS_DIR ${folder}`, SAVE);
  for (const name of names) yield await keyFileFinding(folder, name);
}

const SAVE = 'Save the public keys of the issuer there, for example: kubectl get --raw /openid/v1/jwks > cluster.json';

async function keyFileFinding(folder: string, name: string): Promise<Finding> {
  try {
    const document = await readKeyFile(folder, name);
    const usable = usableKeysIn(document);
    if (holdsPrivateKey(document)) {
      return failed(
        'public keys',
        `${name} in JWKS_DIR has a private key, with which anybody who can read it makes JWTs`,
        'Replace the key at the issuer, and save only public keys',
      );
    }
    return ok('public keys', `${name}: ${counted(usable.length, 'key')}`);
  } catch (error) {
    if (!(error instanceof DocumentUnavailable)) throw error;
    // It may be another kind of file. Those that trusts need are a check of their own.
    return warning('public keys', `${name} in JWKS_DIR cannot be used: ${error.message}`, SAVE);
  }
}

/** `d` is the private part of every kind of key (RFC 7518), `k` a secret. */
const holdsPrivateKey = (document: unknown) =>
  (document as { keys: unknown[] }).keys.some(
    (key) => typeof key === 'object' && key !== null && ('d' in key || 'k' in key),
  );

/** Finds the files that trusts name and the daemon cannot read. @param trusts how many active ones name each file. */
export async function* keyFilesOfTrusts(
  trusts: readonly { file: string; trusts: number }[],
  context: DoctorContext,
): AsyncGenerator<Finding> {
  const folder = validSettings(context, ['jwksFolder'])?.jwksFolder;
  for (const { file, trusts: count } of trusts) {
    const why = folder === undefined ? 'JWKS_DIR is not set' : await whyUnreadable(folder, file);
    if (why !== null) yield failed('trusts', `${counted(count, 'trust')} cannot exchange JWTs: ${why}`, SAVE);
  }
}

/** Finds projects in OIDC_ROLES that do not exist. @param existing returns those of these IDs that do. */
export async function* projectsOfRoles(
  context: DoctorContext,
  existing: (ids: string[]) => Promise<ReadonlyMap<string, unknown>>,
): AsyncGenerator<Finding> {
  const mapping = mappingIn(context);
  if (mapping === null || mapping instanceof SettingsError) return;
  const projects = await existing(mapping.rows.flatMap((row) => row.projects ?? []));
  for (const [n, row] of mapping.rows.entries()) {
    const missing = (row.projects ?? []).filter((id) => !projects.has(id));
    if (missing.length === 0) continue;
    const evidence = `row ${n + 1} of OIDC_ROLES names projects that do not exist: ${missing.join(', ')}`;
    yield warning('roles', evidence, 'Compare with: llmp project list');
  }
}

const whyUnreadable = (folder: string, file: string) =>
  readKeyFile(folder, file).then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : codeOf(error)),
  );
