/** Who is in the demo: projects, tokens with their clients, and what operators did. Times are hours before the start. */

const DAY = 24;

/** When a client sends requests: at work, all day, or at night. */
export type Rhythm = 'office' | 'steady' | 'night';

export interface Traffic {
  model: string;
  rhythm: Rhythm;
  /** Requests in a busy hour. */
  perHour: number;
  /** Address of the client. */
  clientIp: string;
  /** How it begins and ends; by default, in the whole week. */
  fromHoursAgo?: number;
  untilHoursAgo?: number;
  /** Requests in a second of the running demo. */
  perSecond?: number;
  /** The share of its requests whose response is cached: it allows that, and often asks the same. */
  cachedShare?: number;
}

export interface DemoToken {
  name: string;
  project: string;
  issuedHoursAgo: number;
  /** Until it expires, counted from the start of the demo; negative if it has expired. */
  hoursLeft: number;
  cap?: number;
  by: string;
  revoked?: { hoursAgo: number; by: string; reason: string };
  traffic?: Traffic;
}

export interface DemoProject {
  name: string;
  createdHoursAgo: number;
  by: string;
  deactivatedHoursAgo?: number;
  reason?: string;
  /** Since then the provider rejects its key. */
  keyRejectedHoursAgo?: number;
}

export const WEEK_HOURS = 7 * DAY;
const ANA = 'ana@laptop';
const BEN = 'ben@desk';

export const MODELS = {
  mini: 'gpt-4o-mini',
  large: 'gpt-4o',
  open: 'llama-3.3-70b',
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

export const PROJECTS: readonly DemoProject[] = [
  { name: 'billing', createdHoursAgo: 45 * DAY, by: BEN, deactivatedHoursAgo: 50, reason: 'moved to another vendor' },
  { name: 'research', createdHoursAgo: 45 * DAY, by: ANA },
  { name: 'web', createdHoursAgo: 44 * DAY, by: ANA },
  { name: 'support', createdHoursAgo: 30 * DAY, by: BEN },
  { name: 'mobile', createdHoursAgo: 12 * DAY, by: ANA, keyRejectedHoursAgo: 3 },
];

export const TOKENS: readonly DemoToken[] = [
  {
    name: 'docs-search',
    project: 'web',
    issuedHoursAgo: 40 * DAY,
    hoursLeft: 50 * DAY,
    by: ANA,
    traffic: {
      model: MODELS.mini,
      rhythm: 'office',
      perHour: 22,
      clientIp: '10.4.0.17',
      perSecond: 0.7,
      cachedShare: 0.6,
    },
  },
  {
    name: 'ci-deploy',
    project: 'web',
    issuedHoursAgo: 20,
    hoursLeft: 0.2,
    cap: 5_000,
    by: 'ci@runner-4',
    traffic: { model: MODELS.mini, rhythm: 'steady', perHour: 9, clientIp: '10.4.0.31', perSecond: 0.2 },
  },
  {
    name: 'staging',
    project: 'web',
    issuedHoursAgo: 6 * DAY,
    hoursLeft: 26,
    cap: 1_000,
    by: BEN,
    traffic: { model: MODELS.large, rhythm: 'office', perHour: 3, clientIp: '10.4.1.8', perSecond: 0.1 },
  },
  {
    name: 'load-test',
    project: 'web',
    issuedHoursAgo: 30,
    hoursLeft: 3 * DAY,
    cap: 150,
    by: BEN,
    traffic: {
      model: MODELS.mini,
      rhythm: 'steady',
      perHour: 20,
      clientIp: '10.4.1.9',
      fromHoursAgo: 12,
      perSecond: 0.06,
    },
  },
  {
    name: 'landing-page',
    project: 'web',
    issuedHoursAgo: 3 * DAY,
    hoursLeft: -3,
    by: ANA,
    traffic: { model: MODELS.mini, rhythm: 'steady', perHour: 4, clientIp: '10.4.0.22', perSecond: 0.05 },
  },
  {
    name: 'eval-runner',
    project: 'research',
    issuedHoursAgo: 8 * DAY,
    hoursLeft: 1.5,
    cap: 50_000,
    by: 'ines@lab',
    traffic: { model: MODELS.large, rhythm: 'night', perHour: 26, clientIp: '10.9.2.40', perSecond: 0.2 },
  },
  {
    name: 'notebook',
    project: 'research',
    issuedHoursAgo: 5 * DAY,
    hoursLeft: 2 * DAY,
    cap: 500,
    by: 'ines@lab',
    traffic: { model: MODELS.open, rhythm: 'office', perHour: 4, clientIp: '10.9.2.41', perSecond: 0.1 },
  },
  {
    name: 'batch-night',
    project: 'research',
    issuedHoursAgo: 21 * DAY,
    hoursLeft: 20 * DAY,
    by: 'ines@lab',
    traffic: { model: MODELS.open, rhythm: 'night', perHour: 18, clientIp: '10.9.2.52', perSecond: 0.1 },
  },
  {
    name: 'paper-review',
    project: 'research',
    issuedHoursAgo: 4 * DAY,
    hoursLeft: 3 * DAY,
    by: 'ines@lab',
    traffic: {
      model: MODELS.retired,
      rhythm: 'office',
      perHour: 2,
      clientIp: '10.9.2.43',
      fromHoursAgo: 30,
      perSecond: 0.04,
    },
  },
  { name: 'old-laptop', project: 'research', issuedHoursAgo: 44 * DAY, hoursLeft: 40 * DAY, by: ANA },
  { name: 'thesis', project: 'research', issuedHoursAgo: 43 * DAY, hoursLeft: 60 * DAY, by: 'ines@lab' },
  { name: 'summer-school', project: 'research', issuedHoursAgo: 16 * DAY, hoursLeft: -2 * DAY, by: 'ines@lab' },
  {
    name: 'support-bot',
    project: 'support',
    issuedHoursAgo: 29 * DAY,
    hoursLeft: 13 * DAY,
    by: BEN,
    traffic: {
      model: MODELS.mini,
      rhythm: 'office',
      perHour: 17,
      clientIp: '10.6.0.5',
      perSecond: 0.5,
      cachedShare: 0.4,
    },
  },
  {
    name: 'translations',
    project: 'support',
    issuedHoursAgo: 9 * DAY,
    hoursLeft: 5 * DAY,
    cap: 15_000,
    by: BEN,
    traffic: { model: MODELS.large, rhythm: 'office', perHour: 5, clientIp: '10.6.0.9', perSecond: 0.1 },
  },
  {
    name: 'contractor-kim',
    project: 'support',
    issuedHoursAgo: 10 * DAY,
    hoursLeft: 20 * DAY,
    by: BEN,
    revoked: { hoursAgo: 26, by: ANA, reason: 'leaked in a CI log' },
    traffic: {
      model: MODELS.large,
      rhythm: 'office',
      perHour: 3,
      clientIp: '203.0.113.7',
      untilHoursAgo: 20,
    },
  },
  { name: 'support-macros', project: 'support', issuedHoursAgo: 2 * DAY, hoursLeft: 5 * DAY, by: BEN },
  {
    name: 'mobile-app',
    project: 'mobile',
    issuedHoursAgo: 11 * DAY,
    hoursLeft: 19 * DAY,
    by: ANA,
    traffic: { model: MODELS.mini, rhythm: 'steady', perHour: 10, clientIp: '10.7.0.3', perSecond: 0.6 },
  },
  {
    name: 'mobile-beta',
    project: 'mobile',
    issuedHoursAgo: 4,
    hoursLeft: 0.7,
    cap: 200,
    by: ANA,
    traffic: { model: MODELS.mini, rhythm: 'steady', perHour: 6, clientIp: '10.7.0.8', untilHoursAgo: 2.9 },
  },
  {
    name: 'ios-preview',
    project: 'mobile',
    issuedHoursAgo: 12 * DAY,
    hoursLeft: 30,
    by: ANA,
    revoked: { hoursAgo: 75, by: BEN, reason: 'preview has ended' },
    traffic: { model: MODELS.mini, rhythm: 'office', perHour: 2, clientIp: '10.7.0.4', untilHoursAgo: 76 },
  },
  {
    name: 'invoices',
    project: 'billing',
    issuedHoursAgo: 20 * DAY,
    hoursLeft: 15 * DAY,
    by: BEN,
    traffic: { model: MODELS.large, rhythm: 'office', perHour: 2, clientIp: '10.8.0.2', untilHoursAgo: 46 },
  },
];

/** Single requests before the week of traffic, by token: of clients that have not come back. */
export const EARLY_USES: readonly { token: string; hoursAgo: number }[] = [
  { token: 'old-laptop', hoursAgo: 36 * DAY },
  { token: 'old-laptop', hoursAgo: 35 * DAY },
  { token: 'thesis', hoursAgo: 41 * DAY },
  { token: 'summer-school', hoursAgo: 9 * DAY },
];

/** A time in which the provider failed more often than usual. */
export const OUTAGE = { fromHoursAgo: 27.3, untilHoursAgo: 26.4, share: 0.6 };
