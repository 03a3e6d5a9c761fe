/** `llmp project check`: asks a project's provider with the project's key. */
import { EXIT } from '../../console/failure.js';
import { projectCheckView } from '../../console/views.js';
import { ONE_PROJECT } from '../batch.js';
import { command } from '../command.js';
import { checkedId, wholeIdOf } from '../ids.js';

export const check = command({
  path: ['manage', 'project', 'check'],
  summary: 'check whether the provider of a project responds and accepts its key',
  examples: [
    ['project check web', 'request the list of models with the stored key; exit with 9 if something is wrong'],
    ['project check web -o json', 'print the result for a script'],
  ],
  argument: ONE_PROJECT,
  options: {},
  async run({ args, output, connect }) {
    const given = checkedId('project', args[0] ?? '');
    const client = await connect();
    const project = await client.project(await wholeIdOf(client, 'project', given));
    const checked = await output.during('waiting for the provider', client.checkProject(project.id));
    await output.one({ project_id: project.id, ...checked }, projectCheckView);
    return checked.result === 'accepted' || checked.result === 'not_confirmed' ? EXIT.done : EXIT.checkFailed;
  },
});
