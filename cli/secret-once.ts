/** Secrets that are shown only once, when they are made: on standard output, or in a new file. */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { visible } from '../console/escape.js';
import { Failure, usage } from '../console/failure.js';
import type { View } from '../console/table.js';
import { endAdvice, lostSecret, type Output, type SecretOwner } from './output.js';

/** How a token or operator is shown that has just been made. */
export interface MadeSecret<T extends { id: string }, Field extends keyof T & string> {
  owner: SecretOwner;
  /** The field that has the secret. */
  field: Field;
  view: View<T>;
  viewWithout: View<Omit<T, Field>>;
}

/** @throws {Failure} if the output would be the ID only. */
export function refuseToLoseSecret(output: Output): void {
  if (output.format !== 'id' || output.isQuiet) return;
  throw usage('-o id would lose the secret, which is shown only now', { advice: 'Add --out FILE' });
}

export const onceNote = <T extends { id: string }>(
  { id }: T,
  { owner: { noun, end } }: Pick<MadeSecret<T, never>, 'owner'>,
): string => `The secret is not shown again. Undo: llmp ${noun} ${end} ${id}`;

/** Prints what was made, with its secret; with --quiet only that. */
export async function showSecret<T extends { id: string } & Record<Field, string>, Field extends keyof T & string>(
  made: T,
  as: MadeSecret<T, Field>,
  output: Output,
): Promise<void> {
  output.secretOf(() => made.id, as.owner);
  if (output.isQuiet && output.format !== 'jq' && output.format !== 'template') output.text(visible(made[as.field]));
  else await shown(made, as, output);
  output.note(onceNote(made, as));
}

async function shown<T extends { id: string }, Field extends keyof T & string>(
  made: T,
  { view, owner }: MadeSecret<T, Field>,
  output: Output,
): Promise<void> {
  try {
    await output.one(made, view);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // It exists, but its secret was not shown.
    const advice = endAdvice(made.id, owner, ', whose secret is lost');
    throw new Failure(error.exitCode, error.message, { ...error.explanation, advice });
  }
}

/** Creates the file first: if the secret cannot be saved, nothing must be made. */
export async function secretIntoFile<T extends { id: string } & Record<Field, string>, Field extends keyof T & string>(
  path: string,
  make: () => Promise<T>,
  { owner, field, viewWithout }: MadeSecret<T, Field>,
  output: Output,
): Promise<void> {
  const file = await newFile(path);
  const made = await make().catch(async (error: unknown) => {
    await file.close();
    await unlink(path);
    throw error;
  });
  try {
    await file.writeFile(`${made[field]}\n`);
    await file.close();
  } catch (error) {
    throw lostSecret(made.id, error, ` to ${path}`, owner);
  }
  if (!output.isQuiet) {
    const others = Object.fromEntries(Object.entries(made).filter(([name]) => name !== field));
    await output.one(others as Omit<T, Field>, viewWithout);
  }
  output.note(`The secret is in ${path}, readable by you only. Undo: llmp ${owner.noun} ${owner.end} ${made.id}`);
}

const OWNER_ONLY = 0o600;

async function newFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', OWNER_ONLY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw usage(`${path} already exists and is not overwritten`, { advice: 'Name a new file' });
    throw usage(`cannot create ${path}`, { why: code ?? 'failed', cause: error });
  }
}
