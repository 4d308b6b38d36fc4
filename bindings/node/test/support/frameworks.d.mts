/** An application that runs. */
export interface Application {
  readonly url: string;
  close(): Promise<unknown>;
}

/** By name, what starts an application of a framework whose handler gives a text for a path. */
export const FRAMEWORKS: Record<
  "Express 4" | "Express 5" | "Koa" | "Fastify 5" | "Hono",
  (handler: (path: string) => Promise<string>, wire?: (app: never) => void) => Promise<Application>
>;
