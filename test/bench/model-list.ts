/** The response to GET /v1/models, of both the provider and the bare server. */
import { models } from '../../daemon/demo/responses.js';

export const modelList = Buffer.from(JSON.stringify(models('gpt-4o', 'gpt-4o-mini', 'text-embedding-3-small')));
