/**
 * How long a `Retry-After` asks to wait, in milliseconds; null for none, for one that cannot be read, and for one that is over.
 *
 * @param now - the time in milliseconds since 1970, which a date is compared with
 */
export function retryAfterOf(header: string | null, now: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  // Either seconds or a date; a date always names a month.
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : /[A-Za-z]{3}/.test(text) ? Date.parse(text) - now : Number.NaN;
  return ms > 0 ? ms : null;
}
