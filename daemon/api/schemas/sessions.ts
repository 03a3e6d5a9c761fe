import * as z from 'zod';
import { ROLES } from '../vocabulary.js';
import { EXAMPLE_IDS, about, nullable, string, timestamp, uuid } from './fields.js';

export const sessionCreate = z
  .strictObject({
    token: about(
      z.string().min(1).max(1000).describe('the management token or the secret of an operator, as the user entered it'),
      'What the user entered in the log-in form: the management token, or the secret of an operator.',
    ),
  })
  .describe('A new session.');

export const session = z
  .strictObject({
    id: uuid('ID of the session.'),
    begun_at: timestamp('Login time.'),
    expires_at: timestamp('When the session ends by itself.'),
    ended_at: nullable(
      timestamp('When it was ended, by the user or by a change of what the user may do; null until then.'),
    ),
    actor: string(
      'As in the audit log: `admin` for the holder of the management token, `operator:` and a name, or `person:` with the identity provider and the ID that it gave.',
    ),
    name: nullable(string('Name of the operator or the person; null for the holder of the management token.')),
    role: nullable(z.enum(ROLES).describe('The role; null for the holder of the management token.')),
  })
  .describe('A login session.');

export const sessionExample: z.input<typeof session> = {
  id: EXAMPLE_IDS.session,
  begun_at: '2030-01-31T12:00:00.000Z',
  expires_at: '2030-01-31T20:00:00.000Z',
  ended_at: null,
  actor: 'admin',
  name: null,
  role: null,
};
