/** Projects: the keys of providers. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

export const projects = {
  createProject: {
    ...ROUTES.createProject,
    tag: 'Projects',
    summary: 'Create a project',
    description: 'The name must be new. The key is stored encrypted; no answer ever holds it.',
    body: schemas.projectCreate,
    status: 201,
    answer: schemas.project,
    refusals: ['name_taken'],
    example: {
      bodies: { 'a project': { name: 'Checkout', api_key: 'sk-proj-example-key-of-the-provider-4f2a' } },
      answer: schemas.projectExample,
    },
  },
  listProjects: {
    ...ROUTES.listProjects,
    tag: 'Projects',
    summary: 'List projects',
    description: 'The newest come first.',
    query: schemas.projectQuery,
    list: schemas.project,
    refusals: [],
    example: { query: { is_active: true }, answer: [schemas.projectExample] },
  },
  readProject: {
    ...ROUTES.readProject,
    tag: 'Projects',
    summary: 'Show a project',
    description: 'Shows a project by its id. Of its key only the last characters are shown.',
    answer: schemas.project,
    refusals: ['not_found'],
    example: { answer: schemas.projectExample },
  },
  updateProject: {
    ...ROUTES.updateProject,
    tag: 'Projects',
    summary: 'Change a project',
    description:
      'Changes the name or the key of a project, deactivates or reactivates it. Deactivating ends the requests of its tokens that are on their way.',
    body: schemas.projectPatch,
    answer: schemas.project,
    refusals: ['not_found', 'name_taken'],
    example: {
      bodies: { rename: { name: 'Checkout and billing' }, deactivate: { is_active: false } },
      answer: { ...schemas.projectExample, name: 'Checkout and billing', updated_at: '2030-01-31T13:00:00.000Z' },
    },
  },
  deleteProject: {
    ...ROUTES.deleteProject,
    tag: 'Projects',
    summary: 'Delete a project',
    description:
      'Always refused, whether or not there is such a project, and recorded: projects are deactivated instead.',
    refusals: ['method_not_allowed'],
  },
  revokeTokensOfProject: {
    ...ROUTES.revokeTokensOfProject,
    tag: 'Projects',
    summary: 'Revoke all tokens of a project',
    description: 'Revokes every token of a project. Those that were revoked before are not counted.',
    answer: schemas.tokensRevoked,
    refusals: ['not_found'],
    example: { answer: { message: '3 tokens revoked', revoked_count: 3 } },
  },
} as const satisfies Partial<Declared>;
