/** The files that an audit file was before: put aside by us, or by logrotate, under names with a number or a date in them. */
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';

// `.1`, `-20261122`, `-2026-11-22_1795305600`: digits, and what stands between them.
const NUMBERED_OR_DATED = String.raw`[.-]\d[\d._T:-]{0,40}`;
const COMPRESSED = /\.(gz|xz|zst|bz2|lz4|Z|zip)$/;
// More than that no rotation keeps. Each is opened.
const MOST_FILES = 10_000;

/** @returns paths, the older ones rather first: only their lines say in which order they are. Compressed ones are not among them. */
export async function rotationsOf(path: string): Promise<string[]> {
  return (await allRotationsOf(path)).filter((each) => !COMPRESSED.test(each));
}

/** With those that are compressed, by whatever program. */
export async function allRotationsOf(path: string): Promise<string[]> {
  const isRotation = rotationPattern(path);
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const found = names.filter((each) => isRotation.test(each)).slice(0, MOST_FILES);
  return found.sort(byAge).map((name) => join(dirname(path), name));
}

/** Whether a name is one that the file at the path may have been given. */
export const isRotationOf = (file: string, path: string): boolean =>
  dirname(file) === dirname(path) && rotationPattern(path).test(basename(file));

/** How a file is compressed; null where it is not. */
export const compressionOf = (file: string): string | null => COMPRESSED.exec(file)?.[1] ?? null;

function rotationPattern(path: string): RegExp {
  const name = basename(path);
  const extension = extname(name);
  const stem = name.slice(0, name.length - extension.length);
  const behind = `${escaped(name)}${NUMBERED_OR_DATED}`;
  const before = `${escaped(stem)}${NUMBERED_OR_DATED}${escaped(extension)}`;
  return new RegExp(`^(?:${behind}|${before})(?:\\.(?:gz|xz|zst|bz2|lz4|Z|zip))?$`);
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|-]/g, '\\$&');

/** Dates in their order, and then numbers, of which the highest is the oldest. */
function byAge(a: string, b: string): number {
  const [one, other] = [numberIn(a), numberIn(b)];
  if (one === null || other === null) return one === other ? (a < b ? -1 : 1) : one === null ? -1 : 1;
  return other - one;
}

const numberIn = (name: string): number | null => {
  const [, number] = /\.(\d{1,6})(?:\.[a-zA-Z]\w*)*$/.exec(name) ?? [];
  return number === undefined ? null : Number(number);
};

/** Puts the file aside as `.1`, what was `.1` as `.2` and so on, and removes what is beyond `most`: several, if more were kept before. */
export async function putAside(path: string, most: number): Promise<void> {
  for (let number = most; await removedIfThere(`${path}.${number}`); number++);
  for (let number = most - 1; number >= 1; number--) await renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
  await renameIfThere(path, `${path}.1`);
}

/** @returns whether it was there. */
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
