/** Reads the shipped price list, and `PRICES_FILE`. */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { SettingsError } from '../../config/settings.js';
import { whyUnreadable } from '../../config/text-file.js';
import { MAX_PRICES_FILE_BYTES, PriceFileInvalid, pricesIn } from '../core/cost/price-file.js';
import type { PriceList, PriceLists } from '../core/cost/costs.js';

/** The list that is shipped, as config/prices.json contains it. */
export type ShippedList = Omit<PriceLists['shipped'], 'sha256'>;

/** What `PRICES_FILE` contained when it was read. */
export interface PriceFile extends PriceList {
  text: string;
}

export const shippedListPath = () => join(packageRoot(), 'config/prices.json');

let shipped: PriceLists['shipped'] | null = null;

/** Reads the list once, and then returns the same object. */
export function readShippedList(): PriceLists['shipped'] {
  if (shipped === null) {
    const text = readFileSync(shippedListPath(), 'utf8');
    shipped = { ...(JSON.parse(text) as ShippedList), sha256: sha256Of(text) };
  }
  return shipped;
}

/**
 * @param path null: there is no file.
 * @throws {SettingsError} that names the lines and members that are wrong.
 */
export function readPriceFile(path: string | null): PriceFile | null {
  if (path === null) return null;
  let text: string;
  try {
    if (statSync(path).size > MAX_PRICES_FILE_BYTES) throw new SettingsError(['PRICES_FILE: is larger than 4 MiB']);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    throw new SettingsError([`PRICES_FILE: cannot read ${path}: ${whyUnreadable(error)}`]);
  }
  try {
    return priceFileOf(text);
  } catch (error) {
    if (!(error instanceof PriceFileInvalid)) throw error;
    throw new SettingsError(error.problems.map((problem) => `PRICES_FILE: ${path}, ${problem}`));
  }
}

/** @throws {PriceFileInvalid} */
export const priceFileOf = (text: string): PriceFile => ({ text, sha256: sha256Of(text), prices: pricesIn(text) });

const sha256Of = (text: string) => createHash('sha256').update(text).digest('hex');
