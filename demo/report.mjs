// What the demo prints: a timeline, what was saved, and its claims, each with whether it held.

/** Starts the timeline of one part; every line carries the seconds since then. */
export function startReport(title) {
  const begin = performance.now();
  const claims = [];
  console.log(`\n${title}\n`);
  return {
    /** One line of the timeline: who or what, and what happened. */
    line(who, what) {
      const seconds = ((performance.now() - begin) / 1000).toFixed(2);
      console.log(`${seconds.padStart(7)} s  ${who.padEnd(12)}${what}`);
    },
    /** A state change, as listeners get it. */
    change({ fromState, toState, reason, failures, openMs, instance }) {
      const why = reason === "threshold" ? `${failures} failures, open for ${openMs} ms` : reason;
      const by = instance === null ? "" : `, by process ${instance}`;
      this.line("CIRCUIT", `${fromState} -> ${toState} (${why})${by}`);
    },
    saved(text) {
      console.log(`\n  saved: ${text}`);
    },
    /** Notes whether a claim held. */
    claim(text, held) {
      claims.push({ text, held });
    },
    /** Prints the claims; true if all of them held. */
    close() {
      console.log();
      for (const { text, held } of claims) console.log(`  ${held ? "holds " : "BROKEN"}  ${text}`);
      return claims.length > 0 && claims.every(({ held }) => held);
    },
  };
}

/** `12.3 ms`, or `0.05 ms` where tenths would say nothing. */
export function ms(value) {
  return `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)} ms`;
}
