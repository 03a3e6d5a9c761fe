/** Who is in the demo: projects, tokens with their clients, and what operators did. Times are hours before the start. */
import type { Budget } from '../api/vocabulary.js';

const DAY = 24;

/** When a client sends requests: at work, all day, or at night. */
export type Rhythm = 'office' | 'steady' | 'night';

export interface Traffic {
  model: string;
  rhythm: Rhythm;
  /** Requests in a busy hour. */
  perHour: number;
  /** Address of the client. */
  ip: string;
  /** When it began and ended, in hours before the start; by default, in the whole week. */
  from?: number;
  until?: number;
  /** Requests in a second of the running demo. */
  perSecond?: number;
  /** The share of its requests whose response is cached: it allows that, and often asks the same. */
  cachedShare?: number;
}

export interface DemoToken {
  name: string;
  project: string;
  /** Issued that many hours ago. */
  issued: number;
  /** Hours until it expires, counted from the start of the demo; negative if it has expired. */
  left: number;
  cap?: number;
  by: string;
  budget?: Budget;
  revoked?: { hoursAgo: number; by: string; reason: string };
}

export interface DemoProject {
  name: string;
  /** Created that many hours ago. */
  created: number;
  by: string;
  deactivated?: { hoursAgo: number; reason: string };
  /** Since then the provider rejects its key. */
  keyRejected?: number;
  budget?: Budget;
}

export const WEEK_HOURS = 7 * DAY;
const ANA = 'ana@laptop';
const BEN = 'ben@desk';
const INES = 'ines@lab';

export const MODELS = {
  mini: 'gpt-4o-mini',
  large: 'gpt-4o',
  /** On a machine of the company, without a price. */
  open: 'house-70b',
  /** No longer offered by the provider. */
  retired: 'gpt-4-32k',
} as const;

/** Prompt and completion tokens of a request on average, and the usual time of a response in ms. */
export const MODEL_FACTS: Readonly<Record<string, { prompt: number; completion: number; usualMs: number }>> = {
  [MODELS.mini]: { prompt: 420, completion: 160, usualMs: 480 },
  [MODELS.large]: { prompt: 1_350, completion: 410, usualMs: 1_250 },
  [MODELS.open]: { prompt: 900, completion: 700, usualMs: 860 },
  [MODELS.retired]: { prompt: 0, completion: 0, usualMs: 90 },
};

/** Of a prompt, on average. */
export const BYTES_PER_TOKEN = 4;

/** The most completion tokens that the clients allow. */
export const maxTokensOf = (model: string): number => Math.max(16, 2 * (MODEL_FACTS[model]?.completion ?? 0));

export const PROJECTS: readonly DemoProject[] = [
  { name: 'billing', created: 45 * DAY, by: BEN, deactivated: { hoursAgo: 50, reason: 'moved to another vendor' } },
  { name: 'research', created: 45 * DAY, by: ANA },
  {
    name: 'web',
    created: 44 * DAY,
    by: ANA,
    budget: { usd: '0.15', period: 'day', mode: 'shadow' },
  },
  { name: 'support', created: 30 * DAY, by: BEN },
  { name: 'mobile', created: 12 * DAY, by: ANA, keyRejected: 3 },
];

export const TOKENS: readonly DemoToken[] = [
  { name: 'docs-search', project: 'web', issued: 40 * DAY, left: 50 * DAY, by: ANA },
  { name: 'ci-deploy', project: 'web', issued: 20, left: 0.2, cap: 5_000, by: 'ci@runner-4' },
  { name: 'staging', project: 'web', issued: 6 * DAY, left: 26, cap: 1_000, by: BEN },
  { name: 'load-test', project: 'web', issued: 30, left: 3 * DAY, cap: 150, by: BEN },
  { name: 'landing-page', project: 'web', issued: 3 * DAY, left: -3, by: ANA },
  { name: 'eval-runner', project: 'research', issued: 8 * DAY, left: 1.5, cap: 50_000, by: INES },
  {
    name: 'notebook',
    project: 'research',
    issued: 5 * DAY,
    left: 2 * DAY,
    cap: 500,
    by: INES,
    budget: { tokens: 2_000_000, period: 'day', mode: 'soft' },
  },
  { name: 'batch-night', project: 'research', issued: 21 * DAY, left: 20 * DAY, by: INES },
  { name: 'paper-review', project: 'research', issued: 4 * DAY, left: 3 * DAY, by: INES },
  { name: 'old-laptop', project: 'research', issued: 44 * DAY, left: 40 * DAY, by: ANA },
  { name: 'thesis', project: 'research', issued: 43 * DAY, left: 60 * DAY, by: INES },
  { name: 'summer-school', project: 'research', issued: 16 * DAY, left: -2 * DAY, by: INES },
  { name: 'support-bot', project: 'support', issued: 29 * DAY, left: 13 * DAY, by: BEN },
  {
    name: 'translations',
    project: 'support',
    issued: 9 * DAY,
    left: 5 * DAY,
    cap: 15_000,
    by: BEN,
    budget: { usd: '25.00', period: 'month', mode: 'hard' },
  },
  {
    name: 'contractor-kim',
    project: 'support',
    issued: 10 * DAY,
    left: 20 * DAY,
    by: BEN,
    revoked: { hoursAgo: 26, by: ANA, reason: 'leaked in a CI log' },
  },
  { name: 'support-macros', project: 'support', issued: 2 * DAY, left: 5 * DAY, by: BEN },
  { name: 'mobile-app', project: 'mobile', issued: 11 * DAY, left: 19 * DAY, by: ANA },
  { name: 'mobile-beta', project: 'mobile', issued: 4, left: 0.7, cap: 200, by: ANA },
  {
    name: 'ios-preview',
    project: 'mobile',
    issued: 12 * DAY,
    left: 30,
    by: ANA,
    revoked: { hoursAgo: 75, by: BEN, reason: 'preview has ended' },
  },
  { name: 'invoices', project: 'billing', issued: 20 * DAY, left: 15 * DAY, by: BEN },
];

/** A token whose budget was set while the rest of it was already small, so late that not even a night's requests spend it before the start. */
export const NEARLY_SPENT = { name: 'eval-runner', by: ANA, hoursAgo: 0.5, spentShare: 0.93, mode: 'soft' } as const;

/** What the clients of the tokens send, by the names of the tokens. */
export const TRAFFIC: Readonly<Record<string, Traffic>> = {
  'docs-search': {
    model: MODELS.mini,
    rhythm: 'office',
    perHour: 22,
    ip: '10.4.0.17',
    perSecond: 0.7,
    cachedShare: 0.6,
  },
  'ci-deploy': { model: MODELS.mini, rhythm: 'steady', perHour: 9, ip: '10.4.0.31', perSecond: 0.2 },
  staging: { model: MODELS.large, rhythm: 'office', perHour: 3, ip: '10.4.1.8', perSecond: 0.1 },
  'load-test': { model: MODELS.mini, rhythm: 'steady', perHour: 20, ip: '10.4.1.9', from: 12, perSecond: 0.06 },
  'landing-page': { model: MODELS.mini, rhythm: 'steady', perHour: 4, ip: '10.4.0.22', perSecond: 0.05 },
  'eval-runner': { model: MODELS.large, rhythm: 'night', perHour: 26, ip: '10.9.2.40', perSecond: 0.2 },
  notebook: { model: MODELS.open, rhythm: 'office', perHour: 4, ip: '10.9.2.41', perSecond: 0.1 },
  'batch-night': { model: MODELS.open, rhythm: 'night', perHour: 18, ip: '10.9.2.52', perSecond: 0.1 },
  'paper-review': { model: MODELS.retired, rhythm: 'steady', perHour: 2, ip: '10.9.2.43', from: 30, perSecond: 0.04 },
  'old-laptop': {
    model: MODELS.large,
    rhythm: 'steady',
    perHour: 2,
    ip: '10.9.2.60',
    from: 36 * DAY,
    until: 36 * DAY - 3,
  },
  thesis: { model: MODELS.large, rhythm: 'steady', perHour: 2, ip: '10.9.2.61', from: 41 * DAY, until: 41 * DAY - 2 },
  'summer-school': {
    model: MODELS.large,
    rhythm: 'steady',
    perHour: 2,
    ip: '10.9.2.62',
    from: 9 * DAY,
    until: 9 * DAY - 2,
  },
  'support-bot': {
    model: MODELS.mini,
    rhythm: 'office',
    perHour: 17,
    ip: '10.6.0.5',
    perSecond: 0.5,
    cachedShare: 0.4,
  },
  translations: { model: MODELS.large, rhythm: 'office', perHour: 5, ip: '10.6.0.9', perSecond: 0.1 },
  'contractor-kim': { model: MODELS.large, rhythm: 'office', perHour: 3, ip: '203.0.113.7', until: 20 },
  'mobile-app': { model: MODELS.mini, rhythm: 'steady', perHour: 10, ip: '10.7.0.3', perSecond: 0.6 },
  'mobile-beta': { model: MODELS.mini, rhythm: 'steady', perHour: 6, ip: '10.7.0.8', until: 2.9 },
  'ios-preview': { model: MODELS.mini, rhythm: 'office', perHour: 2, ip: '10.7.0.4', until: 76 },
  invoices: { model: MODELS.large, rhythm: 'office', perHour: 2, ip: '10.8.0.2', until: 46 },
};

/** A time in which the provider failed more often than usual. */
export const OUTAGE = { from: 27.3, until: 26.4, share: 0.6 };
