/** The description of this API. */
import * as z from 'zod';
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';

export const description = {
  describeApi: {
    ...ROUTES.describeApi,
    tag: 'Description',
    summary: 'Read this description',
    description: 'The description of the management API that you are reading, as OpenAPI 3.1.',
    answer: z.record(z.string(), z.unknown()),
    refusals: [],
  },
} as const satisfies Partial<Declared>;
