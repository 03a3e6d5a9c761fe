/** Runs one attack by hand: `node dist/test/faults/support/attacks/main.js --attack A1 --connections 8 --token`. */
import { parseArgs } from 'node:util';
import { ATTACK_NAMES, type AttackName, VARIANTS } from './catalog.js';
import { inSmallNamespace, whyNoNamespace } from './namespace.js';
import { rowOf, TABLE_HEAD } from './report.js';
import { runAttack, type SceneOptions } from './scene.js';

const HELP = `--attack ${ATTACK_NAMES.join('|')}
--variant NAME         another form of the attack than its first
${ATTACK_NAMES.map((name) => `                         ${name}: ${VARIANTS[name].join(', ')}\n`).join('')}--connections N        default 8 (A1, A6), 300 (A2, A5), 50 (A4), 1,000 (A9)
--token                the attackers have a valid token (A1, A2; the others always have)
--target v1|manage|admin   what is uploaded to (A1), default v1
--rate MB              the most that each connection (A1, A2), or the provider on each (A5, A6), sends per second, default as fast as it is read
--answers N            answers in all (A4), default 400
--seconds N            duration, default 6
--alone N              seconds before and after it in which the other project is measured, default 3
--workers N            default 1
--heap MB              --max-old-space-size of the daemon, default 256
--cache                with the response cache
--small-buffers        in a network namespace with small socket buffers (root)
--daemon FOLDER        the clone whose build is attacked, default this one
--json                 one line of JSON instead of the table`;

const { values } = parseArgs({
  options: {
    attack: { type: 'string' },
    variant: { type: 'string' },
    connections: { type: 'string' },
    token: { type: 'boolean', default: false },
    target: { type: 'string', default: 'v1' },
    rate: { type: 'string' },
    answers: { type: 'string' },
    seconds: { type: 'string', default: '6' },
    alone: { type: 'string', default: '3' },
    workers: { type: 'string', default: '1' },
    heap: { type: 'string', default: '256' },
    cache: { type: 'boolean', default: false },
    'small-buffers': { type: 'boolean', default: false },
    daemon: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));

async function main(): Promise<void> {
  if (values.help || !ATTACK_NAMES.includes(values.attack as AttackName)) {
    console.log(HELP);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  if (values['small-buffers'] && process.env.LLMP_SMALL_BUFFERS === undefined) {
    const reason = whyNoNamespace();
    if (reason !== null) {
      console.error(`skipped: ${reason}`);
      process.exitCode = 3;
      return;
    }
    process.exitCode = await inSmallNamespace([
      'env',
      'LLMP_SMALL_BUFFERS=1',
      process.execPath,
      ...process.argv.slice(1),
    ]);
    return;
  }
  const attack = values.attack as AttackName;
  const options: SceneOptions = {
    attack,
    variant: values.variant ?? VARIANTS[attack][0] ?? '',
    connections: number(values.connections),
    token: values.token || !['A1', 'A2'].includes(attack),
    target: values.target as SceneOptions['target'],
    rate: number(values.rate),
    answers: number(values.answers),
    seconds: Number(values.seconds),
    aloneSeconds: Number(values.alone),
    workers: Number(values.workers),
    heapMb: Number(values.heap),
    cache: values.cache,
    daemon: values.daemon,
  };
  const result = await runAttack(options);
  if (values.json) console.log(JSON.stringify(result));
  else console.log(`${TABLE_HEAD}\n${rowOf(process.argv.slice(2).join(' '), result)}`);
}

await main();
