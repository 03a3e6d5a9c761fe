/** The answer to GET /v1/models, of the provider and of the bare server alike. */
import { models } from '../../daemon/demo/answers.js';

export const modelList = Buffer.from(JSON.stringify(models('gpt-4o', 'gpt-4o-mini', 'text-embedding-3-small')));
