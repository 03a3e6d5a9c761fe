/** Projects, which hold the API keys of providers. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { projectVersion } from './versions.js';

export const projects = {
  createProject: {
    ...ROUTES.createProject,
    permission: 'create projects',
    tag: 'Projects',
    summary: 'Create a project',
    description:
      'The name must not be in use. The API key is stored encrypted and is never returned. With `check_key`, a key that the provider refuses is not stored.',
    body: schemas.projectCreate,
    status: 201,
    response: schemas.projectChanged,
    refusals: ['name_taken', 'key_refused', 'key_not_checked'],
    example: {
      bodies: { 'a project': { name: 'Checkout', api_key: 'sk-proj-example-key-of-the-provider-4f2a' } },
      response: schemas.projectExample,
    },
  },
  listProjects: {
    ...ROUTES.listProjects,
    permission: 'read projects',
    tag: 'Projects',
    summary: 'List projects',
    description: 'Lists projects, newest first.',
    query: schemas.projectQuery,
    list: schemas.project,
    refusals: [],
    example: { query: { is_active: true }, response: [schemas.projectExample] },
  },
  readProject: {
    ...ROUTES.readProject,
    permission: 'read projects',
    tag: 'Projects',
    summary: 'Get a project',
    description: 'Returns the project with this ID. Only the last characters of its API key are included.',
    response: schemas.project,
    version: projectVersion,
    refusals: ['not_found'],
    example: { response: schemas.projectExample },
  },
  updateProject: {
    ...ROUTES.updateProject,
    permission: 'change projects',
    tag: 'Projects',
    summary: 'Update a project',
    description:
      'Changes the name, the API key, the provider, the limits or the budget of a project, or deactivates or reactivates it. `allow`, `limits` and `budget` are replaced as a whole, and removed with null. Deactivating a project also ends the in-flight requests of its tokens. Requests in flight keep the old API key. With `check_key`, a key that the provider refuses is not stored.',
    body: schemas.projectPatch,
    response: schemas.projectChanged,
    version: projectVersion,
    refusals: [
      'not_found',
      'name_taken',
      'precondition_failed',
      'upstream_changed',
      'key_required',
      'key_refused',
      'key_not_checked',
    ],
    example: {
      bodies: { rename: { name: 'Checkout and billing' }, deactivate: { is_active: false } },
      response: { ...schemas.projectExample, name: 'Checkout and billing', updated_at: '2030-01-31T13:00:00.000Z' },
    },
  },
  deleteProject: {
    ...ROUTES.deleteProject,
    permission: 'change projects',
    tag: 'Projects',
    summary: 'Delete a project',
    description:
      'Always refused, even if the project does not exist, and recorded in the audit log. Deactivate the project instead.',
    refusals: ['method_not_allowed'],
  },
  revokeTokensOfProject: {
    ...ROUTES.revokeTokensOfProject,
    permission: 'change tokens',
    tag: 'Projects',
    summary: 'Revoke all tokens of a project',
    description:
      'Also ends the in-flight requests of these tokens. `revoked_count` does not include tokens that were already revoked.',
    response: schemas.tokensRevoked,
    refusals: ['not_found'],
    example: { response: { message: '3 tokens revoked', revoked_count: 3 } },
  },
  checkProject: {
    ...ROUTES.checkProject,
    permission: 'change projects',
    tag: 'Projects',
    summary: "Check a project's provider and key",
    description:
      "Requests the list of models from the project's provider with the project's API key, which costs nothing, and returns how the provider responded. Nothing is changed or recorded. The request ends after 10 seconds. Only a few checks can run at the same time.",
    response: schemas.projectCheck,
    refusals: ['not_found'],
    example: { response: schemas.projectCheckExample },
  },
} as const satisfies Partial<Declared>;
