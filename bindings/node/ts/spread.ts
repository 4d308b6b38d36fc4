/**
 * A number from 0 to 1 that stays the same for a text as long as this page, worker or process lives, and is another in the
 * next: drawn once, without keeping a list of what it was drawn for.
 */
export function spread(text: string): number {
  seed ??= Math.floor(Math.random() * 2 ** 32);
  // FNV-1a, and then its bits mixed: texts that differ at the end only must not come out alike.
  let hash = seed ^ 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

let seed: number | undefined;
