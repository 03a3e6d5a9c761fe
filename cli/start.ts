#!/usr/bin/env -S node --
/** What dist/cli/llmp.cjs does: it runs the bundle, dist/cli/llmp-HASH.cjs. */
import { join } from 'node:path';
import { readCodeCache, scriptOf, start } from './bundled-program.js';

/** The bundler defines it: the name of the bundle. */
declare const BUNDLE: string;

const bundle = join(import.meta.dirname, BUNDLE);
start(scriptOf(bundle, readCodeCache(bundle)), bundle, require, (id) => import(id));
