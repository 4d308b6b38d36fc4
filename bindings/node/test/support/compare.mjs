// Running vectors on a machine, and the one comparison that every JavaScript runner shares, in Node and in a page.

/** Failures listed of one vector: what follows a first difference is mostly its echo. */
const LISTED_PER_VECTOR = 5;

export const SETTLEMENTS = ["recordSuccess", "recordFailure", "release"];

/** Runs all vectors, each on a machine of its own, which `start` makes from the configuration. */
export function run(runner, vectors, start) {
  const failures = [];
  let steps = 0;
  for (const vector of vectors) {
    steps += vector.steps.length;
    const found = runOne(vector, start(vector.config ?? {}));
    failures.push(...found.slice(0, LISTED_PER_VECTOR).map((failure) => `${runner}: ${vector.name} ${failure}`));
    const more = found.length - LISTED_PER_VECTOR;
    if (more > 0) failures.push(`${runner}: ${vector.name}: ${more} more differences in this vector`);
  }
  return { runner, vectors: vectors.length, steps, failures };
}

function runOne(vector, machine) {
  const kept = new Map();
  return vector.steps.flatMap((step, index) => {
    const place = `steps[${index}] (${step.do} at ${step.at})`;
    try {
      return runStep(step, machine, kept).differences.map((difference) => `${place}: ${difference}`);
    } catch (error) {
      return [`${place}: ${error.message}`];
    }
  });
}

/** Does a step, with the permits `kept` by label: what the machine answered, and in what that differs from what was expected. */
export function runStep(step, machine, kept) {
  const permit = step.permit === undefined ? null : kept.get(step.permit);
  if (permit === undefined) throw new Error(`permit: the admission of "${step.permit}" was refused, there is none`);
  const got = { allowed: null, retryAfterMs: null, status: null };
  if (step.do === "canRequest") {
    const admission = machine.acquire(step.at);
    got.allowed = admission.permit !== undefined;
    got.retryAfterMs = admission.retryAfterMs;
    if (step.as !== undefined) kept.set(step.as, admission.permit);
  } else if (SETTLEMENTS.includes(step.do)) {
    got.status = machine.settle(step.at, step.do, permit);
  } else if (step.do !== "snapshot") {
    machine.control(step.at, step.do, step.forMs);
  }
  Object.assign(got, machine.snapshot(step.at));
  const differences = Object.entries(step.expect ?? {})
    .filter(([field, expected]) => got[field] !== expected)
    .map(([field, expected]) => `${field}: got ${JSON.stringify(got[field])}, expected ${JSON.stringify(expected)}`);
  return { got, differences };
}
