/**
 * Which resources may be in the cache of any worker: a set of hashes, so that it has a fixed size. A resource that is not in it is in no cache, and a
 * change of it concerns no other worker. Entries are never removed; when the set is full, every change is sent to all workers, as without it.
 */
const BITS = 2 ** 16;

export class ResourceFilter {
  readonly bytes = new Uint8Array(BITS / 8);

  has(bit: number): boolean {
    return ((this.bytes[bit >>> 3] ?? 0) & (1 << (bit & 7))) !== 0;
  }

  add(bit: number): void {
    this.bytes[bit >>> 3] = (this.bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
  }

  addAll(bytes: Uint8Array): void {
    for (const [at, byte] of bytes.entries()) this.bytes[at] = (this.bytes[at] ?? 0) | byte;
  }
}

/** The place of a resource in the filter (FNV-1a). */
export function bitOf(projectId: string, resource: string): number {
  let hash = 0x81_1c_9d_c5;
  for (let at = 0; at < projectId.length; at++) hash = Math.imul(hash ^ projectId.charCodeAt(at), 0x01_00_01_93);
  for (let at = 0; at < resource.length; at++) hash = Math.imul(hash ^ resource.charCodeAt(at), 0x01_00_01_93);
  return (hash ^ (hash >>> 16)) & (BITS - 1);
}
