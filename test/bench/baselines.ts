/** The baselines for the daemon, as far as they are installed. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '../support/daemon.js';
import { freePort } from '../support/ports.js';
import type { Target } from './load.js';
import { installed } from './machine.js';
import type { Program, Service } from './processes.js';
import type { Bench } from './run.js';

export interface Measurable {
  name: string;
  service: Service;
  target: Target;
  /** The same with a token whose requests are counted up to a cap; missing if there is none. */
  capped?: Target;
}

export const FORWARDER = 'bare undici forwarder';
export const BARE_SERVER = 'bare node:http, no upstream';
export const PORTKEY = "Portkey's gateway";

const NO_HEADERS = { authorization: 'Bearer sk-wt-no-one-looks-at-this-one-0000000000000000000000000' };
const PRINTS_ITS_URL = { prints: /listening (\S+)/ };

/** It runs on the Node.js of the benchmark, so that it is the same for every daemon. */
export function startProvider({ processes, cores }: Bench): Promise<Service> {
  return processes.start({ ...ours('provider', process.execPath), cores: cores.others }, PRINTS_ITS_URL);
}

export async function startForwarder({ processes, cores, node }: Bench, upstreamUrl: string): Promise<Measurable> {
  const service = await processes.start(
    { ...ours('forwarder', node, upstreamUrl), cores: cores.measured },
    PRINTS_ITS_URL,
  );
  return { name: FORWARDER, service, target: { url: service.url, headers: NO_HEADERS } };
}

/** All of them. */
export async function startBaselines(bench: Bench, upstreamUrl: string): Promise<Measurable[]> {
  const started = [
    await startNginx(bench, upstreamUrl),
    await startProviderAlone(bench),
    await startForwarder(bench, upstreamUrl),
    await startPortkey(bench, upstreamUrl),
  ];
  return started.filter((baseline) => baseline !== null);
}

/** Returns the list of models itself: what Node alone takes for a cached response. */
export const startBareServer = (bench: Bench) => startAlone(bench, 'bare-server');

/** Responds to chats itself: what Node alone takes. */
const startProviderAlone = (bench: Bench) => startAlone(bench, 'provider');

async function startAlone({ processes, cores, node }: Bench, script: string): Promise<Measurable> {
  const program = { ...ours(script, node), name: 'bare node:http', cores: cores.measured };
  const service = await processes.start(program, PRINTS_ITS_URL);
  return { name: BARE_SERVER, service, target: { url: service.url, headers: NO_HEADERS } };
}

async function startNginx({ processes, cores }: Bench, upstreamUrl: string): Promise<Measurable | null> {
  const command = installed('nginx');
  if (command === null) return null;
  const dir = temporaryFolder();
  const { host } = new URL(upstreamUrl);
  const port = await freePort();
  writeFileSync(join(dir, 'nginx.conf'), nginxConfiguration(dir, port, host));
  const url = `http://127.0.0.1:${port}`;
  const args = ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', 'stderr'];
  const service = await processes.start({ name: 'nginx', command, args, cores: cores.measured }, { answersAt: url });
  return { name: 'nginx, proxy_pass', service, target: { url, headers: NO_HEADERS } };
}

/** One process, so that its CPU time is all there is. */
const nginxConfiguration = (dir: string, port: number, upstream: string) => `
daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi;
  scgi_temp_path ${dir}/scgi;
  keepalive_requests 1000000000;
  upstream provider { server ${upstream}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://provider;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;

/** `npm install --no-save @portkey-ai/gateway` installs it; NODE_PATH may name another place. */
async function startPortkey({ processes, cores, node }: Bench, upstreamUrl: string): Promise<Measurable | null> {
  const script = portkeyScript();
  if (script === null) return null;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = [script, '--headless', `--port=${port}`];
  const program = { name: PORTKEY, command: node, args, cores: cores.measured };
  const service = await processes.start(program, { answersAt: url });
  const headers = {
    ...NO_HEADERS,
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${upstreamUrl}/v1`,
  };
  return { name: PORTKEY, service, target: { url, headers } };
}

function portkeyScript(): string | null {
  const require = createRequire(import.meta.url);
  try {
    const manifest = require.resolve('@portkey-ai/gateway/package.json');
    const { bin } = require(manifest) as { bin: string | Record<string, string> };
    const script = typeof bin === 'string' ? bin : Object.values(bin)[0];
    return script === undefined ? null : join(dirname(manifest), script);
  } catch {
    return null;
  }
}

const ours = (script: string, node: string, ...args: string[]): Omit<Program, 'cores'> => ({
  name: script,
  command: node,
  args: [join(import.meta.dirname, `${script}.js`), ...args],
});
