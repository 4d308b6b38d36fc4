import { Inject } from "@nestjs/common";
import { checkedName } from "../config";

/**
 * Injects the breaker of a circuit, into a constructor parameter or a property: what `CircuitBreakerService.get(name)` gives.
 *
 * @param name - the circuit's name: 1 to 512 bytes of UTF-8 without control characters
 * @throws {@link NameError}
 */
export function InjectCircuitBreaker(name: string): ParameterDecorator & PropertyDecorator {
  injected.add(checkedName(name));
  return Inject(getCircuitBreakerToken(name));
}

/**
 * The injection token of a circuit's breaker, to put something else there in a test.
 * @param name - the circuit's name
 */
export function getCircuitBreakerToken(name: string): string {
  // It is what Nest's own error names where the module is missing.
  return `the breaker of circuit ${name} (is CircuitBreakerModule.forRoot() of switchgear/nestjs imported?)`;
}

/** The circuits that somebody wants to have injected. */
export function injectedNames(): readonly string[] {
  return [...injected];
}

const injected = new Set<string>();
