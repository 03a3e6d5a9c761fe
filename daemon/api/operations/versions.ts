/** The fields of resources that a change depends on: see `Operation.version`. Not among the schemas, which the description lists. */
import * as schemas from '../schemas.js';

/** `updated_at` differs between any two versions. */
export const projectVersion = schemas.project.pick({
  id: true,
  name: true,
  is_active: true,
  api_key_hint: true,
  upstream_base_url: true,
  upstream_auth: true,
  missing_usage: true,
  allow: true,
  limits: true,
  budget: true,
  updated_at: true,
});

/** The other terms of a token never change. */
export const tokenVersion = schemas.token.pick({
  id: true,
  is_active: true,
  revoked_at: true,
  revoked_by: true,
  revoke_reason: true,
  allow: true,
  limits: true,
  budget: true,
});

export const operatorVersion = schemas.operator.omit({ last_used_at: true });
export const trustVersion = schemas.trust.omit({ project_name: true });

export const sessionVersion = schemas.session;
