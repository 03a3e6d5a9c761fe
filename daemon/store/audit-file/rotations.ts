/** Rotated audit files, renamed by llmp or logrotate to names with a number or a date. */
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';

// For example `.1`, `-20261122`, `-2026-11-22_1795305600`: digits and separators.
const NUMBERED_OR_DATED = String.raw`[.-]\d[\d._T:-]{0,40}`;
const COMPRESSED = /\.(gz|xz|zst|bz2|lz4|Z|zip)$/;
// More files than any rotation keeps. Each one is opened.
const MAX_FILES = 10_000;

/** @returns paths, roughly from old to new (only their lines show the exact order). Without compressed files. */
export async function rotationsOf(path: string): Promise<string[]> {
  return (await allRotationsOf(path)).filter((each) => !COMPRESSED.test(each));
}

/** Including compressed files, whichever program compressed them. */
export async function allRotationsOf(path: string): Promise<string[]> {
  const isRotation = rotationPattern(path);
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const found = names.filter((each) => isRotation.test(each)).slice(0, MAX_FILES);
  return found.sort(byAge).map((name) => join(dirname(path), name));
}

/** Whether rotation may have given this name to the file at the path. */
export const isRotationOf = (file: string, path: string): boolean =>
  dirname(file) === dirname(path) && rotationPattern(path).test(basename(file));

/** Compression format of a file, from its name; null if it is not compressed. */
export const compressionOf = (file: string): string | null => COMPRESSED.exec(file)?.[1] ?? null;

function rotationPattern(path: string): RegExp {
  const name = basename(path);
  const extension = extname(name);
  const stem = name.slice(0, name.length - extension.length);
  const suffixed = `${escaped(name)}${NUMBERED_OR_DATED}`;
  const infixed = `${escaped(stem)}${NUMBERED_OR_DATED}${escaped(extension)}`;
  return new RegExp(`^(?:${suffixed}|${infixed})(?:\\.(?:gz|xz|zst|bz2|lz4|Z|zip))?$`);
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|-]/g, '\\$&');

/** Dates in ascending order, then numbers, of which the highest is the oldest. */
function byAge(a: string, b: string): number {
  const [one, other] = [numberIn(a), numberIn(b)];
  if (one === null || other === null) return one === other ? (a < b ? -1 : 1) : one === null ? -1 : 1;
  return other - one;
}

const numberIn = (name: string): number | null => {
  const [, number] = /\.(\d{1,6})(?:\.[a-zA-Z]\w*)*$/.exec(name) ?? [];
  return number === undefined ? null : Number(number);
};

/** Rotates the file to `.1`, `.1` to `.2` and so on, and removes all files beyond `most` (several, if the limit was lowered). */
export async function rotate(path: string, most: number): Promise<void> {
  for (let number = most; await removedIfThere(`${path}.${number}`); number++);
  for (let number = most - 1; number >= 1; number--) await renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
  await renameIfThere(path, `${path}.1`);
}

/** @returns whether the file existed. */
async function removedIfThere(path: string): Promise<boolean> {
  try {
    await rm(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return false;
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
