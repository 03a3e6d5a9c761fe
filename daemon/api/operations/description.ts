/** The description of this API. */
import * as z from 'zod';
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';

export const description = {
  describeApi: {
    ...ROUTES.describeApi,
    tag: 'Description',
    summary: 'Get the OpenAPI description',
    description: 'Returns the description of the management API as OpenAPI 3.1.',
    response: z.record(z.string(), z.unknown()),
    refusals: [],
  },
} as const satisfies Partial<Declared>;
