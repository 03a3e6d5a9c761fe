/** A Redis for the run, which stores nothing on disk. */
import { temporaryFolder } from '../support/daemon.js';
import { freePort } from '../support/ports.js';
import { installed } from './machine.js';
import type { Service } from './processes.js';
import type { Bench } from './run.js';

export interface Redis extends Service {
  /** In the form of REDIS_ADDR. */
  address: string;
  /** As if its machine were frozen: connections stay, nothing responds. */
  freeze(): void;
  resume(): void;
}

/** @returns null without redis-server. */
export async function startRedis({ processes, cores }: Bench): Promise<Redis | null> {
  const command = installed('redis-server');
  if (command === null) return null;
  const port = await freePort();
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', temporaryFolder()];
  const service = await processes.start(
    { name: 'Redis', command, args: [...place, '--save', '', '--appendonly', 'no'], cores: cores.others },
    { prints: /(Ready to accept connections)/ },
  );
  const address = `127.0.0.1:${port}`;
  return {
    ...service,
    url: `redis://${address}`,
    address,
    freeze: () => process.kill(service.pid, 'SIGSTOP'),
    resume: () => process.kill(service.pid, 'SIGCONT'),
  };
}
