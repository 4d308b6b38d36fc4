/** What happens at one moment of a vector, and what must be seen then (DESIGN section 7). */
export interface Step {
  readonly at: number;
  readonly do:
    | "canRequest"
    | "recordSuccess"
    | "recordFailure"
    | "release"
    | "reset"
    | "trip"
    | "forceOpen"
    | "disable"
    | "snapshot";
  readonly as?: string;
  readonly permit?: string;
  readonly forMs?: number;
  readonly expect?: Readonly<Record<string, unknown>>;
}

/** A timeline of one circuit. */
export interface Vector {
  readonly name: string;
  readonly about?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly steps: readonly Step[];
}

/**
 * The vectors of a file's content, whichever of the two shapes it has.
 *
 * @param checkConfig - the core's word on a configuration: throws what is wrong with it
 * @throws Error that names the vector, the place, the value and what is valid
 */
export function vectorsOf(content: unknown, checkConfig: (config: Readonly<Record<string, unknown>>) => void): Vector[];
