/** Types of the management API, inferred from the schemas. It has only types, so importing it has no startup cost. */
import type * as z from 'zod';
import type * as schemas from './schemas.js';
import type { Policies, TokenState } from './vocabulary.js';

export type WireProject = z.infer<typeof schemas.project>;
export type WireProjectCheck = z.infer<typeof schemas.projectCheck>;
export type WireProjectChanged = z.infer<typeof schemas.projectChanged>;
export type WireToken = z.infer<typeof schemas.token>;
export type WireTokenCreated = z.infer<typeof schemas.tokenCreated>;
export type WireTokensRevoked = z.infer<typeof schemas.tokensRevoked>;
export type WireCache = z.infer<typeof schemas.cache>;
export type WireCachePurged = z.infer<typeof schemas.cachePurged>;
export type WireStatus = z.infer<typeof schemas.status>;
export type WireUsageLine = z.infer<typeof schemas.usageLine>;
export type WirePrice = z.infer<typeof schemas.price>;
export type WirePriceLists = z.infer<typeof schemas.priceLists>;
export type WirePrices = z.infer<typeof schemas.prices>;
export type WirePricesMissing = z.infer<typeof schemas.pricesMissing>;
export type WirePriceExplained = z.infer<typeof schemas.priceExplained>;
export type WireTop = z.infer<typeof schemas.top>;
export type WireTopRow = z.infer<typeof schemas.topRow>;
export type WireIncident = z.infer<typeof schemas.incident>;
export type WireIncidents = z.infer<typeof schemas.incidents>;
export type WireMigrations = z.infer<typeof schemas.migrations>;
export type WireRequestEvent = z.infer<typeof schemas.requestEvent>;
export type WireChangeEvent = z.infer<typeof schemas.changeEvent>;
export type WireBudgetEvent = z.infer<typeof schemas.budgetEvent>;
export type WireEvent = z.infer<typeof schemas.event>;
export type WireAuditRecord = z.infer<typeof schemas.auditRecord>;
export type WireBatchUndone = z.infer<typeof schemas.batchUndone>;
export type WireSelf = z.infer<typeof schemas.self>;
export type WireSession = z.infer<typeof schemas.session>;
export type WireSessionCreated = z.infer<typeof schemas.sessionCreated>;
export type WireOperatorCreated = z.infer<typeof schemas.operatorCreated>;
export type WireOperator = z.infer<typeof schemas.operator>;
export type WireTrust = z.infer<typeof schemas.trust>;
export type WireProblem = z.infer<typeof schemas.problem>;
export type WireTokenState = TokenState;

export type ProjectPatch = z.infer<typeof schemas.projectPatch>;
export type TokenCreate = z.infer<typeof schemas.tokenCreate>;
/** Values of a form or command that creates a token, except the lifetime and the policies. All fields are required, so a forgotten one does not compile. */
export type TokenCreateTerms = { project_id: string } & {
  [K in Exclude<keyof TokenCreate, 'project_id' | 'like' | 'duration_hours' | 'duration_minutes' | keyof Policies>]-?:
    TokenCreate[K] | undefined;
};
export type CachePurge = z.infer<typeof schemas.cachePurge>;

export type OperatorCreate = z.infer<typeof schemas.operatorCreate>;
export type OperatorPatch = z.infer<typeof schemas.operatorPatch>;
export type TrustCreate = z.infer<typeof schemas.trustCreate>;
export type TrustPatch = z.infer<typeof schemas.trustPatch>;

/** Query parameters as strings, as in the URL. */
export type ProjectQuery = Partial<Record<keyof z.input<typeof schemas.projectQuery>, string>>;
export type EventQuery = Partial<Record<keyof z.input<typeof schemas.eventQuery>, string>>;
export type EventStreamQuery = Partial<Record<keyof z.input<typeof schemas.eventStreamQuery>, string>>;
export type TokenQuery = Partial<Record<keyof z.input<typeof schemas.tokenQuery>, string>>;
export type UsageQuery = Partial<Record<keyof z.input<typeof schemas.usageQuery>, string>>;
export type PricesQuery = Partial<Record<keyof z.input<typeof schemas.pricesQuery>, string>>;
export type PriceQuery = Partial<Record<keyof z.input<typeof schemas.priceQuery>, string>>;
export type TopQuery = Partial<Record<keyof z.input<typeof schemas.topQuery>, string>>;

export type AuditQuery = Partial<Record<keyof z.input<typeof schemas.auditQuery>, string>>;
export type AuditStreamQuery = Partial<Record<keyof z.input<typeof schemas.auditStreamQuery>, string>>;

export type { FrontEnd } from './vocabulary.js';
