/** A daemon in a separate process with a provider and a token, for tests of the process itself. It runs in real time. */
import { join } from 'node:path';
import { ManagementClient } from '../../../daemon/api/client.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../../support/daemon.js';
import { type DaemonProcess, launchDaemon, type LaunchOptions } from '../../support/process.js';
import { type Provider, startProvider } from '../../support/provider.js';
import { ask, type Fields, head, type RawResponse, RawClient } from '../../support/raw.js';
import { type Series, scraped } from '../../support/scrape.js';

export interface ServedDaemonOptions extends LaunchOptions {
  env?: Record<string, string>;
  /** Continues with the database of a previous daemon. */
  dir?: string;
  /** The fault that occurs in the process at SIGUSR2, as JavaScript. The file is not part of llmp. */
  atSignal?: string;
  /** The address at which the daemon finds the provider, if it is not its own. */
  upstream?: (provider: Provider) => string;
}

export class ServedDaemon {
  readonly provider: Provider;
  readonly process: DaemonProcess;
  readonly url: string;
  /** The URL of the management API: `url`, unless `MANAGEMENT_LISTEN_ADDR` says otherwise. */
  readonly managementUrl: string;
  readonly dir: string;
  /** The secret of a token without a cap. */
  secret = '';
  tokenId = '';
  projectId = '';
  readonly #clients: RawClient[] = [];

  private constructor(provider: Provider, process: DaemonProcess, url: string, managementUrl: string, dir: string) {
    this.provider = provider;
    this.process = process;
    this.url = url;
    this.managementUrl = managementUrl;
    this.dir = dir;
  }

  static async start({ env, dir = temporaryFolder(), atSignal, upstream, ...launch }: ServedDaemonOptions = {}) {
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
    const served = new ServedDaemon(
      provider,
      launched,
      url,
      management === undefined ? url : `http://${management}`,
      dir,
    );
    await served.#issue();
    return served;
  }

  async #issue(): Promise<void> {
    const { id } = await this.management.createProject({ name: `served ${Date.now()}`, api_key: UPSTREAM_KEY });
    const { id: tokenId, token } = await this.management.createToken({ project_id: id });
    this.secret = token;
    this.tokenId = tokenId;
    this.projectId = id;
  }

  get management(): ManagementClient {
    const options = { managementToken: MANAGEMENT_TOKEN, frontEnd: 'cli', timeoutMs: 10_000, fetch } as const;
    return new ManagementClient({ server: this.managementUrl, ...options });
  }

  get pid(): number {
    return this.process.child.pid ?? 0;
  }

  /** Triggers `atSignal`. */
  signal(): void {
    this.process.child.kill('SIGUSR2');
  }

  get(path = '/v1/models', fields: Fields = {}): Promise<RawResponse> {
    return ask(this.url, head(`GET ${path}`, this.secret, fields));
  }

  probe(path: string): Promise<RawResponse> {
    return ask(this.url, head(`GET ${path}`, null));
  }

  metrics(): Promise<Series[]> {
    return scraped(`${this.url}/metrics`);
  }

  /** A connection to the daemon that is closed with it. */
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
