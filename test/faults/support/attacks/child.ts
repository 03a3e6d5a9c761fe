/** Both ends of the channel between the process that measures an attack and its children. */
import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { join } from 'node:path';

/** A child that was told its plan, and answers each question with a report. */
export class Child<Plan extends object, Ready extends object, Report extends object> {
  readonly #process: ChildProcess;
  readonly ready: Promise<Ready>;

  constructor(program: string, plan: Plan) {
    this.#process = fork(join(import.meta.dirname, program), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.ready = this.#next<Ready>();
    this.#process.send(plan);
  }

  report(): Promise<Report> {
    const next = this.#next<Report>();
    this.#process.send('report');
    return next;
  }

  #next<Message>(): Promise<Message> {
    return new Promise((resolve, reject) => {
      this.#process.once('message', (message) => {
        this.#process.off('exit', onExit);
        resolve(message as Message);
      });
      const onExit = () => {
        reject(new Error(`${this.#process.spawnargs[1] ?? 'a child'} has ended`));
      };
      this.#process.once('exit', onExit);
    });
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill('SIGKILL');
    await gone;
  }
}

/** The child's end: `begin` gets the plan, and returns the first message and what answers questions. */
export function serve(
  niceness: number,
  begin: (plan: never) => Promise<{ ready: object; report: () => object | Promise<object> }>,
): void {
  if (!process.send) return;
  // Attackers must not take the time of what is measured.
  setPriority(niceness);
  process.on('disconnect', () => process.exit());
  process.once('message', (plan) => {
    void begin(plan as never).then(({ ready, report }) => {
      process.send?.(ready);
      process.on('message', () => {
        void Promise.resolve(report()).then((said) => process.send?.(said));
      });
    });
  });
}
