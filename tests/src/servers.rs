//! Real Redis servers for the suites: started on a free port in a folder of their own, gone with their handle, and gone
//! too when the process that started them is killed.

use std::error::Error;
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, ConnectionLike, FromRedisValue, RedisResult};
use tempfile::TempDir;

/// Whatever keeps a server from starting.
pub type Failure = Box<dyn Error + Send + Sync>;

/// How long a server may take to do what it always does in a moment. Nothing is measured by it: a machine that is busy
/// makes the tests slow, and only one that is broken makes them fail.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// Ports tried before giving up: another process may take one between our asking for it and the server's binding it.
const ATTEMPTS: usize = 20;
/// The bus of a cluster node listens this far above its port.
const BUS_OFFSET: u16 = 10_000;
const SLOTS: u16 = 16_384;

/// Keeps the server's pipe open; when the pipe closes, which the death of this process does too, the server is killed.
/// (A death signal would do the same, but it fires when the *thread* ends, and each test has a thread of its own.)
const KEEPER: &str = r#"
exec 3<&0
"$@" 3<&- &
server=$!
(read -r _; kill -9 $server) <&3 &
keeper=$!
wait $server 2>/dev/null
kill $keeper 2>/dev/null
"#;

/// A running `redis-server` without persistence.
#[derive(Debug)]
pub struct Server {
    port: u16,
    keeper: Child,
    pipe: Option<ChildStdin>,
    folder: TempDir,
}

impl Server {
    /// Starts a standalone server.
    ///
    /// # Errors
    /// No `redis-server` to be found, or none that starts.
    pub fn start() -> Result<Self, Failure> {
        Self::start_with(&[])
    }

    /// Starts a server with more options, as `redis-server` takes them on its command line.
    ///
    /// # Errors
    /// No `redis-server` to be found, or none that starts with these options.
    pub fn start_with(options: &[&str]) -> Result<Self, Failure> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let mut server = Self::launch(free_port()?, options)?;
            if server.wait_until_up()? {
                return Ok(server);
            }
            last = server.log();
        }
        Err(format!("redis-server is not installed or did not start in {ATTEMPTS} attempts; its last log:\n{last}")
            .into())
    }

    /// Starts a read-only replica of `primary`, and waits until it has its data.
    ///
    /// # Errors
    /// The replica does not start, or does not get the data.
    pub fn replica_of(primary: &Self) -> Result<Self, Failure> {
        let port = primary.port.to_string();
        let replica = Self::start_with(&["--replicaof", "127.0.0.1", &port, "--replica-read-only", "yes"])?;
        let mut connection = replica.connect()?;
        until("the replica has its primary's data", || {
            let info: String = redis::cmd("INFO").arg("replication").query(&mut connection)?;
            Ok(info.contains("master_link_status:up"))
        })?;
        Ok(replica)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new connection.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn connect(&self) -> RedisResult<Connection> {
        redis::Client::open(("127.0.0.1", self.port))?.get_connection()
    }

    /// Fills the server up: from here on it has no memory for any command that may need some.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn fill_up(&self) -> RedisResult<()> {
        self.set_maxmemory("1")
    }

    /// Gives a server that was filled up its memory back.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn make_room(&self) -> RedisResult<()> {
        self.set_maxmemory("0")
    }

    fn set_maxmemory(&self, bytes: &str) -> RedisResult<()> {
        let mut connection = self.connect()?;
        run(&mut connection, &["CONFIG", "SET", "maxmemory-policy", "noeviction"])?;
        run(&mut connection, &["CONFIG", "SET", "maxmemory", bytes])
    }

    fn launch(port: u16, options: &[&str]) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("switchgear-redis-").tempdir()?;
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", "redis-server"])
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--unixsocket", "up.sock"])
            .args(["--save", "", "--appendonly", "no", "--logfile", "redis.log", "--daemonize", "no"])
            // A replica need not wait for others that might come.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = keeper.stdin.take();
        Ok(Self { port, keeper, pipe, folder })
    }

    /// Whether it came up; not, if it ended first (its port was taken).
    fn wait_until_up(&mut self) -> Result<bool, Failure> {
        let started = Instant::now();
        // The socket is in our own folder and made after the port was bound: what answers there is no other server.
        let client = redis::Client::open(format!("redis+unix://{}", self.folder.path().join("up.sock").display()))?;
        while started.elapsed() < PATIENCE {
            if let Ok(mut connection) = client.get_connection()
                && run(&mut connection, &["PING"]).is_ok()
            {
                return Ok(true);
            }
            if self.keeper.try_wait()?.is_some() {
                return Ok(false);
            }
            thread::sleep(POLL);
        }
        Err(format!("redis-server did not answer within {PATIENCE:?}:\n{}", self.log()).into())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("redis.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // The shell ends once the server it waits for has been killed; there is nothing to do about an error here.
        let _ = self.keeper.wait();
    }
}

/// Three masters that share the slots.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// How many masters there are.
    pub const NODES: u16 = 3;

    /// Starts the masters and waits until each of them knows who has which slots.
    ///
    /// # Errors
    /// A node does not start, or they do not find each other.
    pub fn start() -> Result<Self, Failure> {
        let options =
            ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "60000"];
        let nodes = (0..Self::NODES).map(|_| Server::start_with(&options)).collect::<Result<Vec<_>, _>>()?;
        for (number, node) in nodes.iter().enumerate() {
            let mut connection = node.connect()?;
            redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(number + 1).exec(&mut connection)?;
            let own: Vec<u16> = (0..SLOTS).filter(|&slot| owner(slot) == number).collect();
            redis::cmd("CLUSTER").arg("ADDSLOTS").arg(own).exec(&mut connection)?;
            let first = nodes.first().map_or(0, Server::port);
            redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(first).exec(&mut connection)?;
        }
        for node in &nodes {
            let mut connection = node.connect()?;
            until("every node knows the owner of every slot", || {
                let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut connection)?;
                let known = format!("cluster_known_nodes:{}\r\n", Self::NODES);
                let slots = format!("cluster_slots_ok:{SLOTS}\r\n");
                let is_ok = info.contains("cluster_state:ok") && info.contains(&known) && info.contains(&slots);
                // What is published does not go to a node to which there is no link yet.
                let view: String = redis::cmd("CLUSTER").arg("NODES").query(&mut connection)?;
                Ok(is_ok && !view.contains("disconnected") && !view.contains("handshake"))
            })?;
        }
        Ok(Self { nodes })
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Which of [`nodes`](Self::nodes) has this key, as the cluster itself says.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub fn owner_of(&self, key: &str) -> Result<usize, Failure> {
        let node = self.nodes.first().ok_or("a cluster has nodes")?;
        let slot: u16 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut node.connect()?)?;
        Ok(owner(slot))
    }
}

fn owner(slot: u16) -> usize {
    usize::from(slot * Cluster::NODES / SLOTS)
}

/// Runs one command and drops its reply.
///
/// # Errors
/// The reply is an error, or there is none.
pub fn run(connection: &mut impl ConnectionLike, words: &[&str]) -> RedisResult<()> {
    ask::<redis::Value>(connection, words).map(drop)
}

/// Runs one command.
///
/// # Errors
/// The reply is an error or of another type, or there is none.
pub fn ask<T: FromRedisValue>(connection: &mut impl ConnectionLike, words: &[&str]) -> RedisResult<T> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query(connection)
}

fn until(what: &str, mut is_so: impl FnMut() -> RedisResult<bool>) -> Result<(), Failure> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if is_so()? {
            return Ok(());
        }
        thread::sleep(POLL);
    }
    Err(format!("not within {PATIENCE:?}: {what}").into())
}

/// A port nobody listens on, and nobody on its cluster bus either.
fn free_port() -> Result<u16, Failure> {
    for _ in 0..ATTEMPTS * 10 {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        if let Some(bus) = port.checked_add(BUS_OFFSET)
            && TcpListener::bind(("127.0.0.1", bus)).is_ok()
        {
            return Ok(port);
        }
    }
    Err("no free port".into())
}
