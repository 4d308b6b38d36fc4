/** What a server of {@link startOrigin} answers. */
export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  chunks?: string[];
  breaks?: boolean;
  hang?: boolean;
}

/** A real server that counts what reaches it. */
export interface Origin {
  readonly origin: string;
  readonly requests: number;
  readonly last: { method: string; url: string; headers: Record<string, string>; body: string } | null;
  answer: Answer;
  reached(count: number): Promise<void>;
  release(answer: Answer): void;
  close(): Promise<void>;
}

export function startOrigin(): Promise<Origin>;
