/** The files that an audit file was before: put aside by us, or by logrotate, as `.1`, `.2` … or by date, as `-20261122`. */
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** @returns their paths, the oldest first. Compressed ones cannot be read, and are not among them. */
export async function rotationsOf(path: string): Promise<string[]> {
  const name = basename(path);
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const suffixes = names.filter((each) => each.startsWith(name)).map((each) => each.slice(name.length));
  const numbered = suffixes.filter((suffix) => /^\.\d{1,6}$/.test(suffix));
  const dated = suffixes.filter((suffix) => /^-\d{8}(?:-?\d{1,10})?$/.test(suffix));
  numbered.sort((a, b) => Number(b.slice(1)) - Number(a.slice(1)));
  return [...dated.sort(), ...numbered].map((suffix) => join(dirname(path), name + suffix));
}

/** Puts the file aside as `.1`, what was `.1` as `.2` and so on, and removes what is beyond `most`. */
export async function putAside(path: string, most: number): Promise<void> {
  await rm(`${path}.${most}`, { force: true });
  for (let number = most - 1; number >= 1; number--) await renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
  await renameIfThere(path, `${path}.1`);
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
