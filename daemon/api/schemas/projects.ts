import * as z from 'zod';
import {
  EXAMPLE_IDS,
  about,
  boolean,
  flag,
  name,
  nullable,
  paging,
  queryFlag,
  string,
  timestamp,
  upstreamKey,
  uuid,
} from './fields.js';

const projectName = about(name, "The project's name. No two projects have the same.");
const apiKey = about(
  upstreamKey,
  "The provider's key, with which requests of the project's tokens are sent on. It is kept encrypted and never shown again.",
);

export const projectCreate = z
  .strictObject({ name: projectName, api_key: apiKey })
  .describe('A project to be created.');

export const projectPatch = z
  .strictObject({
    name: projectName.optional(),
    api_key: apiKey.optional(),
    is_active: about(
      flag,
      'False deactivates the project: no token of it can be used until it is active again.',
    ).optional(),
  })
  .meta({ minProperties: 1 })
  .describe('What to change of a project. What is left out stays as it is.');

export const projectQuery = z.strictObject({
  ...paging,
  is_active: about(queryFlag, 'Shows only projects that are active, or only those that are not.').optional(),
});

export const project = z
  .strictObject({
    id: uuid("The project's id."),
    name: string("The project's name."),
    is_active: boolean('Whether tokens of the project can be used.'),
    api_key_hint: string(
      "The last characters of the provider's key, to tell keys apart; empty if the key is short. The key itself is never shown.",
    ),
    created_at: timestamp('When the project was created.'),
    updated_at: timestamp('When the project was last changed.'),
    deactivated_at: nullable(timestamp('When the project was deactivated; null while it is active.')),
  })
  .describe('A project: a key of a provider, and the tokens that stand for it.');

export const projectExample: z.input<typeof project> = {
  id: EXAMPLE_IDS.project,
  name: 'Checkout',
  is_active: true,
  api_key_hint: '4f2a',
  created_at: '2030-01-31T12:00:00.000Z',
  updated_at: '2030-01-31T12:00:00.000Z',
  deactivated_at: null,
};
