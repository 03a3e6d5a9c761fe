import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DispatcherMetrics } from '../../daemon/dispatcher/metrics.js';
import { startDaemon } from '../support/daemon.js';
import { seriesIn } from '../support/scrape.js';

const ROOT = join(import.meta.dirname, '../../..');
const read = (name: string) => readFileSync(join(ROOT, 'config/grafana', name), 'utf8');

interface Dashboard {
  panels: { id: number; title: string; targets?: { expr: string }[] }[];
}
const dashboard = JSON.parse(read('llmp-dashboard.json')) as Dashboard;
const alertsText = read('llmp-alerts.yaml');
/** A single-line YAML string in single or double quotes. */
function textAt(rule: string, name: string): string {
  const [, single, double] = new RegExp(`^ +${name}: (?:'(.*)'|"([^"\\\\]*)")$`, 'm').exec(rule) ?? [];
  return single?.replaceAll("''", "'") ?? double ?? '';
}
const alerts = alertsText
  .split(/^ {6}- alert: /m)
  .slice(1)
  .map((rule) => ({
    name: rule.split('\n', 1)[0] ?? '',
    expr: textAt(rule, 'expr'),
    summary: textAt(rule, 'summary'),
    runbook: textAt(rule, 'runbook'),
  }));

const expressions: [where: string, expr: string][] = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }): [string, string] => [title, expr])),
  ...alerts.map(({ name, expr }): [string, string] => [name, expr]),
];

const KNOWN = new Set(['sum', 'max', 'rate', 'increase', 'histogram_quantile', 'by', 'up']);
const plain = (expr: string) => expr.replace(/\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)/g, ' ');
const metricsIn = (expr: string) => plain(expr).match(/\b(?:llmp|nodejs|process)_\w+/g) ?? [];

describe('the dashboard and the alert rules', () => {
  let known: Set<string>;
  let labels: Map<string, Set<string>>;
  let help: string;

  before(async function () {
    this.timeout(30_000);
    const daemon = await startDaemon({ env: { ENABLE_METRICS: 'true', HTTP_CACHE_ENABLED: 'true' } });
    const token = await daemon.createToken((await daemon.createProject()).id);
    await daemon.call(token.token); // Creates the series that exist only after a request.
    help = await (await fetch(`${daemon.url}/metrics`)).text();
    await daemon.stop();
    const dispatcher = new DispatcherMetrics({ pending: () => 0, isPaused: () => false, isFailing: () => false });
    const all = help + (await dispatcher.registry.metrics());
    labels = new Map();
    for (const { name, labels: own } of seriesIn(all)) {
      labels.set(name, new Set([...(labels.get(name) ?? []), ...Object.keys(own)]));
    }
    known = new Set([...labels.keys(), ...[...all.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? '')]);
  });

  it('only use existing metrics', () => {
    for (const [where, expr] of expressions) {
      const asked = metricsIn(expr);
      expect(asked.length + (expr.includes('up{') ? 1 : 0), `${where} asks for nothing`).to.be.at.least(1);
      for (const name of asked) expect(known, where).to.include(name);
    }
  });

  it('select and group by existing labels', () => {
    for (const [where, expr] of expressions) {
      for (const [, name = '', selector = ''] of expr.matchAll(/\b((?:llmp|nodejs|process)_\w+)\{([^}]*)\}/g)) {
        const asked = [...selector.matchAll(/(\w+)\s*(?:=|!=|=~|!~)\s*"/g)].map(([, label]) => label ?? '');
        for (const label of asked.filter((it) => it !== 'job')) {
          expect(labels.get(name), `${where}: ${name}{${label}}`).to.include(label);
        }
      }
    }
  });

  it('use functions of Prometheus, and have balanced brackets', () => {
    for (const [where, expr] of expressions) {
      expect(expr, where).not.to.equal('');
      const words = plain(expr).match(/[a-z_]\w*/gi) ?? [];
      const strange = words.filter((word) => !KNOWN.has(word) && !known.has(word));
      expect(strange, where).to.deep.equal([]);
      for (const [open, close] of ['()', '[]', '{}']) {
        expect(expr.split(open ?? '').length, `${where}: ${expr}`).to.equal(expr.split(close ?? '').length);
      }
    }
  });

  it('never sum values that all instances report alike', () => {
    const shared = [...help.matchAll(/^# HELP (\S+) .*use max, not sum/gm)].map(([, name]) => name ?? '');
    expect(shared).to.include('llmp_events_lag').and.to.include('llmp_cache_bytes');
    for (const [where, expr] of expressions) {
      for (const name of metricsIn(expr).filter((it) => shared.includes(it))) {
        expect(expr, `${where}: ${name}`).to.match(/^max\b/);
      }
    }
  });

  it('describe for each alert what has happened and what to do', () => {
    expect(alerts).to.have.length.at.least(12);
    expect(new Set(alerts.map(({ name }) => name)).size).to.equal(alerts.length);
    for (const { name, summary, runbook } of alerts) {
      expect(name).to.match(/^Llmp[A-Z]\w+$/);
      expect(summary, name).to.match(/\.$/);
      expect(runbook, name).to.match(/[.?]$/);
    }
  });

  it('have panels with an ID and a title', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).to.equal(ids.length);
    for (const title of ['Traffic', 'Failures', 'Latency', 'Cache', 'Events', 'Limits', 'Process']) {
      expect(dashboard.panels.map((panel) => panel.title)).to.include(title);
    }
  });

  it('use the metrics that docs/operate/metrics.md lists, completely and with their help texts', () => {
    const page = readFileSync(join(ROOT, 'docs/operate/metrics.md'), 'utf8');
    const listed = [...page.matchAll(/^\| `(llmp_\w+)` \| (\w+) \| (.*) \|$/gm)].map(([, ...cells]) => cells);
    const types = new Map([...help.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    const served = [...help.matchAll(/^# HELP (llmp_\S+) (.*)$/gm)].map(([, name, text]) => [
      name,
      types.get(name),
      text?.replaceAll('|', '\\|'),
    ]);
    expect(listed).to.deep.equal(served);
  });

  it('are shipped', () => {
    const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
    expect(files).to.include('config/grafana');
  });
});
