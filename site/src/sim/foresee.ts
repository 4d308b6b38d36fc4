/** When something will be so, found out by asking for later moments: what holds then is the core's to say, and is not worked out here. */

/**
 * The first moment after `from`, and not after `until`, at which something holds that stays so once it does; null if at none.
 * Asks for about as many moments as the span has binary digits.
 */
export function firstMoment(from: number, until: number, holds: (moment: number) => boolean): number | null {
  let [low, high] = [from + 1, until];
  if (high < low || !holds(high)) return null;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
