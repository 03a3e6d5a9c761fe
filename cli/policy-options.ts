/** The options that restrict a token or a project. */
import type { Kind } from '../config/kinds.js';
import {
  type Allow,
  MAX_ALLOWED,
  MAX_ALLOWED_LENGTH,
  MODEL_NAME_PATTERN,
  ROUTE_PATTERN,
  ROUTE_PRESETS,
} from '../daemon/api/vocabulary.js';
import { shellWord } from '../console/escape.js';
import { value, type Values } from './option.js';

/** Removes a list. */
const NONE = 'none';

/** A list of patterns; empty for `none`. */
function entries(pattern: string, what: string): Kind<string[]> {
  const entry = new RegExp(`^(?:${pattern})$`);
  return {
    accepts: `${what}, up to ${MAX_ALLOWED}, separated by commas; or ${NONE}`,
    isList: true,
    parse(given) {
      if (given === NONE) return [];
      const all = given.split(',').map((each) => each.trim());
      const isList = all.length <= MAX_ALLOWED && !all.includes(NONE);
      return isList && all.every((each) => each.length <= MAX_ALLOWED_LENGTH && entry.test(each)) ? all : undefined;
    },
  };
}

const routes = entries(ROUTE_PATTERN, `routes such as 'POST /v1/chat/*', or ${ROUTE_PRESETS.join(', ')}`);
const models = entries(MODEL_NAME_PATTERN, "names of models such as gpt-5-mini or 'claude-*'");

export const allowOptions = {
  allowRoute: value(
    '--allow-route <ROUTE>',
    routes,
    `only these routes: 'METHOD PATH', in which * stands for any characters, or ${ROUTE_PRESETS.join(', ')}; ${NONE} removes the list`,
  ),
  allowModel: value(
    '--allow-model <MODEL>',
    models,
    `only these models; * in a name stands for any characters; ${NONE} removes the list`,
  ),
};

/**
 * @param before the lists that stay, unless an option replaces or removes them.
 * @returns the field of the API; empty without any of the options.
 */
export function allowIn(
  { allowRoute, allowModel }: Values<typeof allowOptions>,
  before: Allow | null,
): { allow?: Allow | null } {
  if (allowRoute === undefined && allowModel === undefined) return {};
  const lists = { routes: allowRoute ?? before?.routes, models: allowModel ?? before?.models };
  const given = Object.entries(lists).filter(([, list]) => list !== undefined && list.length > 0);
  return { allow: given.length === 0 ? null : Object.fromEntries(given) };
}

/** The options that set these lists, and no others. */
export const allowOptionsOf = (allow: Allow | null): string =>
  [
    `--allow-route ${shellWord(allow?.routes?.join(',') ?? NONE)}`,
    `--allow-model ${shellWord(allow?.models?.join(',') ?? NONE)}`,
  ].join(' ');
