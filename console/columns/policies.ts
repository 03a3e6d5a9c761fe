/** What restricts a token or a project, in words. */
import type { Allow } from '../../daemon/api/vocabulary.js';

/** Such as `routes inference; models gpt-5-mini, claude-*`. */
export function allowShown(allow: Allow | null): string {
  if (allow === null) return 'everything';
  const lists = [
    allow.routes && `routes ${allow.routes.join(', ')}`,
    allow.models && `models ${allow.models.join(', ')}`,
  ];
  return lists.filter((list) => list !== undefined).join('; ');
}
