import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { llmp } from './captured.js';

const MANAGEMENT_TOKEN = canary('management');

describe('llmp config', () => {
  function fileWith(content: string): string {
    const path = join(temporaryFolder(), 'llmp.env');
    writeFileSync(path, content);
    return path;
  }

  describe('show', () => {
    it('shows all effective settings, with secrets masked', async () => {
      const env = { MANAGEMENT_TOKEN, LOG_LEVEL: 'debug' };
      const { exitCode, out, err } = await llmp('config show', { env });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      const lines = out.trimEnd().split('\n');
      expect(lines).to.include.members([
        'LOG_LEVEL\tdebug',
        'LISTEN_ADDR\t127.0.0.1:8080',
        'MANAGEMENT_TOKEN\t********',
      ]);
      expect(out).not.to.contain(MANAGEMENT_TOKEN);
    });

    it('shows sources with --origin: the environment before the file before the defaults', async () => {
      const envFile = fileWith(
        `MANAGEMENT_TOKEN_FILE=${fileWith(MANAGEMENT_TOKEN)}\nLOG_LEVEL=warn\nLOG_FORMAT=text\n`,
      );
      const env = { LOG_LEVEL: 'debug' };
      const { out } = await llmp(`config show --origin --json --env-file ${envFile}`, { env });
      const settings = JSON.parse(out) as { name: string; value: string; origin: string }[];
      const of = (name: string) => settings.find((setting) => setting.name === name);
      expect(of('LOG_LEVEL')).to.include({ value: 'debug' });
      expect(of('LOG_FORMAT')).to.include({ value: 'text' });
      expect(of('LISTEN_ADDR')).to.deep.equal({ name: 'LISTEN_ADDR', value: '127.0.0.1:8080', origin: 'default' });
      expect(of('MANAGEMENT_TOKEN')?.value).to.equal('********');
      expect(of('MANAGEMENT_TOKEN')?.origin).to.match(/llmp\.env$/);
    });

    it('is a table on a terminal, without a column of origins unless asked', async () => {
      const env = { MANAGEMENT_TOKEN };
      const [title = '', ...rows] = (await llmp('config show --no-color', { env, terminal: 100 })).out.split('\n');
      expect(title).to.match(/^NAME +VALUE$/);
      expect(rows.join('\n')).to.match(/^LISTEN_ADDR +127\.0\.0\.1:8080$/m);
      const { out } = await llmp('config show --no-color --origin', { env, terminal: 100 });
      expect(out)
        .to.match(/^NAME +VALUE +ORIGIN\n/)
        .and.to.match(/^LISTEN_ADDR +127\.0\.0\.1:8080 +default$/m);
    });

    it('shows a value with several lines on one line', async () => {
      const { out } = await llmp('config show', { env: { MANAGEMENT_TOKEN, DATABASE_URL: 'a\u001b[2J\nb' } });
      expect(out).to.contain('DATABASE_URL\ta\\x1b[2J\\x0ab\n');
    });

    it('exits with 9 if a daemon would not start with them, but shows them', async () => {
      const { exitCode, out, err } = await llmp('config show', { env: { MANAGEMENT_TOKEN, LOG_LEVEL: 'loud' } });
      expect(exitCode).to.equal(9);
      expect(out).to.contain('LOG_LEVEL\tloud\n');
      expect(err).to.contain('LOG_LEVEL must be one of').and.to.contain('llmp config validate');
    });
  });

  describe('validate', () => {
    it('exits with 0 if a daemon would start with them', async () => {
      const { exitCode, out, err } = await llmp('config validate', { env: { MANAGEMENT_TOKEN } });
      expect({ exitCode, out, err }).to.deep.equal({ exitCode: 0, out: '', err: 'The settings are valid.\n' });
    });

    it('exits with 9 and one line per problem, without secrets', async () => {
      const envFile = fileWith('MANAGEMENT_TOKEN=has spaces in-it\nMAX_REQUEST_SIZE=50\n');
      const { exitCode, out } = await llmp(`config validate --env-file ${envFile}`, { env: { LOG_LEVEL: 'loud' } });
      expect(exitCode).to.equal(9);
      const problems = out.trimEnd().split('\n');
      expect(problems.map((problem) => problem.split(' ')[0])).to.have.members([
        'MANAGEMENT_TOKEN',
        'MAX_REQUEST_SIZE',
        'LOG_LEVEL',
      ]);
      expect(out).not.to.contain('spaces in-it');
    });

    it('reports errors and warnings as JSON', async () => {
      const bad = await llmp('config validate --json', { env: {} });
      expect(JSON.parse(bad.out)).to.deep.equal({
        valid: false,
        problems: ['MANAGEMENT_TOKEN is required'],
        warnings: [],
      });
      const { exitCode, out } = await llmp('config validate --json', { env: { MANAGEMENT_TOKEN: 'short' } });
      expect(exitCode).to.equal(0);
      const { valid, warnings } = JSON.parse(out) as { valid: boolean; warnings: string[] };
      expect(valid).to.equal(true);
      expect(warnings.join()).to.contain('shorter than 16');
    });

    it('exits with 9 if the file cannot be read', async () => {
      const { exitCode, out } = await llmp('config validate --env-file /nowhere/llmp.env', {
        env: { MANAGEMENT_TOKEN },
      });
      expect(exitCode).to.equal(9);
      expect(out).to.contain('cannot read /nowhere/llmp.env: ENOENT');
    });
  });
});
