/** Removes what may be a password from text that others wrote: the user part of every URL in it. */
export function redact(text: string): string {
  // Up to the last `@` of a word: a password that was not percent-encoded may hold an `@` or a `/` itself.
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"'`]*@/gi, "$1***@");
}
