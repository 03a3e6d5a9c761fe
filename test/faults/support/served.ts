/** A daemon in a process of its own with a provider and a token, for what happens to a process. Time is real here. */
import { join } from 'node:path';
import { ManagementClient } from '../../../daemon/api/client.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../../support/daemon.js';
import { type DaemonProcess, launchDaemon, type LaunchOptions } from '../../support/process.js';
import { type Provider, startProvider } from '../../support/provider.js';
import { ask, type Fields, head, type RawAnswer, RawClient } from '../../support/raw.js';
import { type Series, scraped } from '../../support/scrape.js';

export interface ServedOptions extends LaunchOptions {
  env?: Record<string, string>;
  /** Goes on with the database of one before. */
  dir?: string;
  /** What goes wrong in the process at SIGUSR2, in JavaScript: a file that it does not ship. */
  atSignal?: string;
  /** Where the daemon finds the provider, if not by its address. */
  upstream?: (provider: Provider) => string;
}

export class Served {
  readonly provider: Provider;
  readonly process: DaemonProcess;
  readonly url: string;
  /** Where management is: at `url`, unless `MANAGEMENT_LISTEN_ADDR` says otherwise. */
  readonly managementUrl: string;
  readonly dir: string;
  /** Of a token without a cap. */
  secret = '';
  tokenId = '';
  readonly #clients: RawClient[] = [];

  private constructor(provider: Provider, process: DaemonProcess, url: string, managementUrl: string, dir: string) {
    this.provider = provider;
    this.process = process;
    this.url = url;
    this.managementUrl = managementUrl;
    this.dir = dir;
  }

  static async start({ env, dir = temporaryFolder(), atSignal, upstream, ...launch }: ServedOptions = {}) {
    const provider = await startProvider();
    const script = atSignal === undefined ? [] : [`process.on('SIGUSR2', () => { ${atSignal} });`];
    const imports = script.map((text) => `--import=data:text/javascript,${encodeURIComponent(text)}`);
    const launched = launchDaemon(
      {
        MANAGEMENT_TOKEN,
        UPSTREAM_BASE_URL: upstream?.(provider) ?? provider.url,
        DATABASE_URL: join(dir, 'llmp.db'),
        SHUTDOWN_DELAY: '0',
        ...env,
      },
      { ...launch, nodeOptions: [...(launch.nodeOptions ?? []), ...imports] },
    );
    const url = await launched.listening.catch(async (error: unknown) => {
      await provider.stop();
      throw error;
    });
    const { management } = JSON.parse(
      launched.logged.find((line) => line.includes('"message":"listening"')) ?? '{}',
    ) as {
      management?: string;
    };
    const served = new Served(provider, launched, url, management === undefined ? url : `http://${management}`, dir);
    await served.#issue();
    return served;
  }

  async #issue(): Promise<void> {
    const { id } = await this.management.createProject({ name: `served ${Date.now()}`, api_key: UPSTREAM_KEY });
    const { id: tokenId, token } = await this.management.createToken({ project_id: id });
    this.secret = token;
    this.tokenId = tokenId;
  }

  get management(): ManagementClient {
    const options = { managementToken: MANAGEMENT_TOKEN, frontEnd: 'cli', timeoutMs: 10_000, fetch } as const;
    return new ManagementClient({ server: this.managementUrl, ...options });
  }

  get pid(): number {
    return this.process.child.pid ?? 0;
  }

  /** Makes happen what `atSignal` says. */
  signal(): void {
    this.process.child.kill('SIGUSR2');
  }

  get(path = '/v1/models', fields: Fields = {}): Promise<RawAnswer> {
    return ask(this.url, head(`GET ${path}`, this.secret, fields));
  }

  probe(path: string): Promise<RawAnswer> {
    return ask(this.url, head(`GET ${path}`, null));
  }

  metrics(): Promise<Series[]> {
    return scraped(`${this.url}/metrics`);
  }

  /** A connection to it that is closed with it. */
  async client(bytes?: string): Promise<RawClient> {
    const client = await RawClient.to(this.url);
    this.#clients.push(client);
    if (bytes !== undefined) client.send(bytes);
    return client;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await this.process.kill();
    await this.provider.stop();
  }
}
