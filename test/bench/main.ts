/** `npm run bench -- PROFILE`: measurements, not tests. Each prints a table, and its figures as one line of JSON. */
import { arch, cpus, platform } from 'node:os';
import { scale } from './scale.js';

export interface Figure {
  what: string;
  value: number;
  unit: string;
  /** What it is to be at most. */
  goal: number | null;
}

const PROFILES: Record<string, () => Promise<Figure[]>> = { scale };

const [name = 'scale'] = process.argv.slice(2);
const profile = PROFILES[name];
if (!profile) {
  console.error(`no profile ${name}; there are: ${Object.keys(PROFILES).join(', ')}`);
  process.exit(2);
}

const figures = await profile();
const { model = 'unknown' } = cpus()[0] ?? {};
console.log(`\n${model} x${cpus().length}, ${platform()} ${arch()}, Node ${process.version}\n`);
console.log('| | | goal |\n|---|---|---|');
for (const { what, value, unit, goal } of figures) {
  console.log(
    `| ${what} | ${value.toFixed(value < 10 ? 1 : 0)} ${unit} | ${goal === null ? '' : `≤ ${goal} ${unit}`} |`,
  );
}
console.log(`\n${JSON.stringify({ profile: name, node: process.version, figures })}`);
