import * as z from 'zod';
import { EXAMPLE_IDS, about, nullable, timestamp, uuid } from './fields.js';

export const sessionCreate = z
  .strictObject({
    token: about(
      z.string().min(1).max(1000).describe('the management token, as the user entered it'),
      'The management token that the user entered in the login form.',
    ),
  })
  .describe('A new session.');

export const session = z
  .strictObject({
    id: uuid('ID of the session.'),
    begun_at: timestamp('Login time.'),
    ended_at: nullable(timestamp('Logout time; null until the user logs out.')),
  })
  .describe('A login session of the Admin UI.');

export const sessionExample: z.input<typeof session> = {
  id: EXAMPLE_IDS.session,
  begun_at: '2030-01-31T12:00:00.000Z',
  ended_at: null,
};
