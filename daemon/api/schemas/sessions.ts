import * as z from 'zod';
import { EXAMPLE_IDS, about, nullable, timestamp, uuid } from './fields.js';

export const sessionCreate = z
  .strictObject({
    token: about(
      z.string().min(1).max(1000).describe('the management token, as it was typed'),
      'What the user typed into the log-in form.',
    ),
  })
  .describe('A session to be begun.');

export const session = z
  .strictObject({
    id: uuid("The session's id."),
    begun_at: timestamp('When the user logged in.'),
    ended_at: nullable(timestamp('When the user logged out; null until then.')),
  })
  .describe('A session of the Admin UI.');

export const sessionExample: z.input<typeof session> = {
  id: EXAMPLE_IDS.session,
  begun_at: '2030-01-31T12:00:00.000Z',
  ended_at: null,
};
