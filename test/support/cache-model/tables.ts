/** The database's rows of projects, tokens and their counts. */
import { NO_POLICIES } from '../../../daemon/api/vocabulary.js';
import { digestOf, mintSecret } from '../../../daemon/core/token.js';
import type { PurseCounts } from '../../../daemon/core/budget/counts.js';
import type { KnownToken, Ledger, TickReport, Tick, TokenLookup } from '../../../daemon/core/ports.js';
import { canary } from '../canaries.js';
import { aToken } from '../factories.js';

export interface ModelProject {
  id: string;
  isActive: boolean;
  /** The name of its upstream key. */
  key: string;
  /** The keys that it has in turn. */
  keys: readonly [string, string];
  /** Counts changes of its activity. */
  changes: number;
}

export interface ModelToken {
  id: string;
  project: ModelProject;
  secret: string;
  digest: string;
  cap: number;
  expiresAtMs: number;
  isActive: boolean;
  /** Counts changes of its activity. */
  changes: number;
  /** Requests of it that reached the upstream. */
  asked: number;
  /** The settled count. */
  uses: number;
  hits: number;
  reserved: number;
}

export class Tables implements TokenLookup, Ledger {
  readonly projects: ModelProject[] = [];
  readonly tokens: ModelToken[] = [];
  readonly #keys = new Map<string, string>();
  /** The number of changes. */
  changeSeq = 0;

  /** @param keys the prefix of its upstream keys' names; two projects may have the same. */
  addProject(keys: string): ModelProject {
    const names = [`${keys}-key-0`, `${keys}-key-1`] as const;
    const project = { id: `project-${this.projects.length}`, isActive: true, key: names[0], keys: names, changes: 0 };
    this.projects.push(project);
    return project;
  }

  addToken(project: ModelProject, cap: number, expiresAtMs: number): ModelToken {
    const secret = mintSecret();
    const token = {
      ...{ id: `token-${this.tokens.length}`, project, secret, digest: digestOf(secret), cap, expiresAtMs },
      ...{ isActive: true, changes: 0, asked: 0, uses: 0, hits: 0, reserved: 0 },
    };
    this.tokens.push(token);
    return token;
  }

  /** The upstream key with that name. */
  keyOf(name: string): string {
    const key = this.#keys.get(name) ?? canary('upstream');
    this.#keys.set(name, key);
    return key;
  }

  nameOf(key: string): string {
    for (const [name, each] of this.#keys) if (each === key) return name;
    throw new Error('an unknown key');
  }

  purses(): Promise<ReadonlyMap<string, PurseCounts>> {
    return Promise.resolve(new Map());
  }

  byDigest(digest: string): Promise<KnownToken | null> {
    const found = this.tokens.find((token) => token.digest === digest);
    if (!found) return Promise.resolve(null);
    const { id, project, cap, expiresAtMs, isActive, reserved, uses, hits } = found;
    const token = aToken({
      ...{ id, projectId: project.id, isActive, expiresAtMs, maxRequests: cap },
      ...{ requestCount: uses, cacheHitCount: hits },
    });
    return Promise.resolve({
      token,
      reserved,
      projectName: project.id,
      projectIsActive: project.isActive,
      upstreamKey: this.keyOf(project.key),
      upstreamBaseUrl: null,
      upstreamAuth: 'bearer',
      missingUsage: 'off',
      projectPolicies: NO_POLICIES,
      projectCreatedAtMs: 0,
      changeSeq: this.changeSeq,
    });
  }

  commit({ rows }: Tick): Promise<TickReport> {
    const units: TickReport['units'] = new Map();
    for (const { tokenId, uses, hits, take, giveBack } of rows) {
      const token = this.tokens.find(({ id }) => id === tokenId);
      if (!token) throw new Error('a settlement for an unknown token');
      token.uses += uses;
      token.hits += hits;
      token.reserved -= giveBack;
      const granted = Math.min(take, token.cap - token.reserved);
      token.reserved += granted;
      if (take > 0) units.set(tokenId, { granted, left: token.cap - token.reserved, isHeldElsewhere: false });
    }
    return Promise.resolve({ units, purses: new Map() });
  }

  // No history breaks the database.
  enrol = () => Promise.resolve(false);
  lastSeq = () => Promise.reject(new Error('no settlement is ever in doubt here'));
  held = () => Promise.reject(new Error('no settlement is ever in doubt here'));
  heldOfPurses = this.held;
  rejoin = () => Promise.reject(new Error('no instance ever expires here'));
  retire = () => Promise.resolve();
}
