/** Chance without a state: what is drawn depends on the seed and on what it is drawn for, not on what was drawn before. */

/** What may be left to chance about one call. Each draws for itself, so that changing one leaves the others as they were. */
export const STREAM = { arrival: 1, latency: 2, outage: 3, failure: 4 } as const;

/**
 * A number of 0 to just below 1, always the same for the same three.
 *
 * @param seed - an integer of 32 bits
 * @param index - which call
 * @param stream - what of it, see {@link STREAM}
 */
export function draw(seed: number, index: number, stream: number): number {
  return mixed(mixed(mixed(seed) ^ index) ^ Math.imul(stream, ODD)) / 2 ** 32;
}

/** Spreads 32 bits over 32 bits, each of them depending on all: two rounds of xorshift and multiplication. */
function mixed(bits: number): number {
  let n = Math.imul(bits ^ (bits >>> 16) ^ ODD, 0x21f0aaad);
  n = Math.imul(n ^ (n >>> 15), 0x735a2d97);
  return (n ^ (n >>> 15)) >>> 0;
}

/** The golden ratio in 32 bits: odd, and with no pattern in it. */
const ODD = 0x9e3779b9;
