/**
 * Tells the operator about a fault in code that the breaker was given and must survive: a listener, a clock. Never throws,
 * for whoever warns has a call to end.
 */
export function warn(message: string, code: string): void {
  // Not every host has a `process`; browsers have a console.
  const host = (globalThis as { process?: { emitWarning?: (text: string, options: object) => void } }).process;
  try {
    if (host?.emitWarning) host.emitWarning(message, { type: "SwitchgearWarning", code });
    else console.warn(`switchgear: ${message}`);
  } catch {
    // A host that forbids warnings, as some test set-ups do, has none.
  }
}
