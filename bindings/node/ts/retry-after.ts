/**
 * How long a `Retry-After` asks to wait, in milliseconds; null for none, for one that cannot be read, and for one that is over.
 *
 * @param now - the time in milliseconds since 1970, which a date is compared with
 */
export function retryAfterOf(header: string | null, now: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  let ms = 0;
  if (/^\d+$/.test(text)) ms = Number(text) * 1000;
  // The form that names no zone means the same one. By itself, a platform would take it for local time.
  else if (DATE.test(text)) ms = Date.parse(text.replace(/\d$/, "$& GMT")) - now;
  return ms > 0 ? ms : null;
}

/** The shape of the three forms of a date in HTTP (RFC 9110, 5.6.7). Platforms take much else for one: `wait 2 may 2099` is a day in May. */
const DATE = /^[A-Z][a-z]+,? .{6,11} [\d:]{8} (GMT|\d{4})$/;
