/** Environments in which the SDKs run: an npm folder, Python virtual environments, a Go program. */
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  type Environment as EnvironmentOf,
  environment,
  install,
  installNpm,
  installPython,
  npmManifest,
} from '../support/registry-environment.js';

export { NotChecked } from '../support/registry-environment.js';

const DRIVERS = resolve(import.meta.dirname, '../../../test/sdks/drivers');

/** A driver that is ready to run. */
export interface Program {
  command: string;
  args: string[];
}

export type Environment = EnvironmentOf<Program>;

const textOf = (file: string) => readFileSync(join(DRIVERS, file), 'utf8');

function npm(): Environment {
  const dependencies = {
    openai4: 'npm:openai@4.104.0',
    openai5: 'npm:openai@5.23.2',
    openai6: 'npm:openai@6.49.0',
    ai: '6.0.325',
    '@ai-sdk/openai': '3.0.141',
    '@ai-sdk/anthropic': '3.0.140',
    '@ai-sdk/google': '3.0.141',
    anthropic0: 'npm:@anthropic-ai/sdk@0.39.0',
    anthropic1: 'npm:@anthropic-ai/sdk@1.14.0',
    '@google/genai': '2.32.0',
    'groq-sdk': '1.6.0',
    '@mistralai/mistralai': '2.7.0',
  };
  const modules = readdirSync(DRIVERS).filter((file) => file.endsWith('.mjs'));
  return environment({
    what: 'npm (openai 4, 5 and 6, ai, the SDKs of Anthropic, Google, Groq and Mistral)',
    ingredients: [npmManifest(dependencies), ...modules.map(textOf)],
    async make(folder) {
      for (const file of modules) copyFileSync(join(DRIVERS, file), join(folder, file)); // There they find their packages.
      await installNpm(folder, dependencies);
    },
    program: (folder) => ({ command: process.execPath, args: [join(folder, 'driver.mjs')] }),
  });
}

function python(name: string, ...packages: string[]): Environment {
  return environment({
    what: `${name} (${packages.join(', ')})`,
    ingredients: packages,
    make: (folder) => installPython(folder, packages),
    program: (folder) => ({ command: join(folder, 'bin/python'), args: [join(DRIVERS, 'driver.py')] }),
  });
}

function go(): Environment {
  const files = ['go.mod', 'go.sum', 'main.go'];
  return environment({
    what: 'go (openai-go, go-openai)',
    ingredients: files.map((file) => textOf(join('go', file))),
    async make(folder) {
      for (const file of files) copyFileSync(join(DRIVERS, 'go', file), join(folder, file));
      await install('go', ['build', '-o', 'driver', '.'], folder);
    },
    program: (folder) => ({ command: join(folder, 'driver'), args: [] }),
  });
}

export const ENVIRONMENTS = {
  npm: npm(),
  pythonNew: python('python-new', 'openai==3.57.0', 'anthropic==2.14.0', 'google-genai==3.6.1'),
  pythonOld: python('python-old', 'openai==1.109.1', 'anthropic==0.125.0'),
  langchain: python('python-langchain', 'langchain-openai==1.0.3'),
  go: go(),
};
