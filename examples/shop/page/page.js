// The page fails fast by itself: a 503 with `Retry-After` stops it for as long as that says.
import { CircuitOpenError, guardFetch } from "/switchgear/index.mjs";

const guarded = guardFetch({ failureThreshold: 3, openJitter: 0 });
const status = document.querySelector("[role=status]");
let orders = 0;

document.querySelector("button").addEventListener("click", async () => {
  orders += 1;
  status.textContent = "paying";
  try {
    const response = await guarded(`/charge/${orders}`);
    status.textContent = response.ok ? (await response.json()).outcome : `the service answered ${response.status}`;
  } catch (error) {
    if (!(error instanceof CircuitOpenError)) throw error;
    status.textContent = `not asked: try again in ${Math.ceil(error.retryAfterMs / 1000)} s`;
  }
});
