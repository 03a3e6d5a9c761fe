/** Handlers of operators. */
import type * as z from 'zod';
import type { WireOperator } from '../../api/contract.js';
import type { Operations } from '../../api/operations.js';
import * as schemas from '../../api/schemas.js';
import { timestampMs } from '../../api/timestamp.js';
import type { OperatorChanges, Operators } from '../../core/operators.js';
import type { Operator } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import type { Handlers } from './endpoints.js';
import { idOf } from './ids.js';
import { wired, wirePage } from './wire.js';

export interface OperatorOptions {
  operators: Operators;
}

type Operation = 'createOperator' | 'listOperators' | 'readOperator' | 'updateOperator' | 'deactivateOperator';

const wireOperator: (operator: Operator) => WireOperator = wired(schemas.operator);

export function operatorHandlers({ operators }: OperatorOptions): Handlers<Pick<Operations, Operation>> {
  return {
    createOperator: async ({ body, caller }) => {
      const { projects, ceilings, expiresAtMs } = termsIn(body);
      const draft = {
        name: body.name,
        role: body.role,
        projects: projects ?? null,
        ceilings: ceilings ?? null,
        expiresAtMs: expiresAtMs ?? null,
      };
      const { operator, secret } = await operators.create(draft, caller);
      return { ...wireOperator(operator), secret };
    },

    listOperators: async (_request, page) => wirePage(await operators.operators(page), wireOperator),

    readOperator: async (request) => wireOperator(await operators.operator(idOf(request, 'operator'))),

    updateOperator: async (request) => {
      const id = idOf(request, 'operator');
      const { body, caller, query, expectMatch: expect } = request;
      const changes: OperatorChanges = { ...termsIn(body), role: body.role, isActive: body.is_active };
      if (Object.values(changes).every((value) => value === undefined)) {
        throw new Refusal(
          'invalid_request',
          'nothing to change: give at least one of role, projects, expires_at, ceilings and is_active',
        );
      }
      const keepTokens = query.keep_tokens === true;
      if (keepTokens && changes.isActive !== false)
        throw new Refusal('invalid_request', 'keep_tokens is for a deactivation: with is_active=false');
      const { operator } = await operators.update(id, changes, caller, { keepTokens, expect });
      return wireOperator(operator);
    },

    deactivateOperator: async (request) => {
      const id = idOf(request, 'operator');
      const { caller, query, expectMatch: expect } = request;
      const keepTokens = query.keep_tokens === true;
      const { revokedCount: count } = await operators.update(id, { isActive: false }, caller, { keepTokens, expect });
      const tokens = keepTokens ? 'its tokens stay' : `${count} ${count === 1 ? 'token' : 'tokens'} revoked`;
      return { message: `operator deactivated, ${tokens}`, revoked_count: count };
    },
  };
}

const termsIn = ({ projects, ceilings, expires_at: expiresAt }: z.output<typeof schemas.operatorPatch>) => ({
  // Each once, in one order, so that the same projects are the same value.
  projects: projects && [...new Set(projects)].sort(),
  ceilings,
  expiresAtMs: expiresAt == null ? expiresAt : timestampMs(expiresAt),
});
