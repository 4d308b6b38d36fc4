export interface ServerOptions {
  /** A fixed port, to come back after a kill. Default: a free one. */
  readonly port?: number;
  /** More options for the server's command line. */
  readonly args?: readonly string[];
  /** Password of the default user. Default: none. */
  readonly password?: string;
}

export interface Server {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Runs `redis-cli` against the server and gives what it printed. */
  cli(...args: string[]): Promise<string>;
  /** Makes the server hang: connections stay, nothing is answered (SIGSTOP). */
  pause(): void;
  resume(): void;
  /** Ends the server as a crash would (SIGKILL) and waits until it is gone. */
  stop(): Promise<void>;
}

export interface Cluster {
  readonly nodes: readonly Server[];
  stop(): Promise<void>;
}

/** What makes a server a node of a cluster. One that a test or a busy machine holds up for a while is not given up. */
export declare const CLUSTERED: readonly string[];

/** A server on 127.0.0.1 that takes connections. */
export declare function startServer(options?: ServerOptions): Promise<Server>;

/** A cluster of masters that is up. Default: three. */
export declare function startCluster(masters?: number): Promise<Cluster>;

/** A sentinel that watches a server, and knows it by a name. */
export declare function startSentinel(master: Server, name: string): Promise<Server>;
