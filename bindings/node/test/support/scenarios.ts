/**
 * The users' scenarios that must hold for any breaker, local or shared. Each is told what makes its breakers and may only
 * use what both kinds have in common; every answer is awaited, for a shared one is a promise.
 */
import { CALLS } from "./scenarios/calls";
import { HALF_OPEN } from "./scenarios/half-open";
import { TIME } from "./scenarios/time";
import type { Scenario } from "./world";

export const SCENARIOS: readonly Scenario[] = [...HALF_OPEN, ...TIME, ...CALLS];
