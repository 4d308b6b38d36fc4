//! Whose fault an error is: the node's, or that of the circuit alone (DESIGN 5.4).

/// Whom an error speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The node: no circuit gets anything there. A connection that broke and a deadline that passed as well.
    Node,
    /// This circuit: its key is somebody else's, or its user may not do that.
    Circuit,
}

/// What the server says of one circuit's keys and rights. Everything else speaks against the node: LOADING, READONLY, OOM,
/// MISCONF, CLUSTERDOWN, MASTERDOWN, TRYAGAIN, BUSY, NOAUTH, WRONGPASS, and whatever a client says of its connection.
const OF_CIRCUIT: [&str; 5] = [
    "WRONGTYPE",
    "NOPERM",
    "CROSSSLOT",
    // Redis 7.0 says it so where a script does what its user may not.
    "The user executing the script can't",
    "this user has no permissions",
];

/// Redis 6.2 wraps the errors of a script: the code then stands further on.
pub(super) fn fault(error: &str) -> Fault {
    if OF_CIRCUIT.iter().any(|words| error.contains(words)) { Fault::Circuit } else { Fault::Node }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_rights_are_the_circuit_s_own_trouble() {
        for error in [
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "ERR Error running script (call to f_0123): @user_script:7: WRONGTYPE Operation against a key",
            "NOPERM this user has no permissions to run the 'hmget' command",
            "ERR The user executing the script can't run this command or subcommand script: 0123, on @user_script:3.",
        ] {
            assert_eq!(fault(error), Fault::Circuit, "{error}");
        }
    }

    #[test]
    fn all_else_is_the_node_s() {
        let codes = "LOADING READONLY OOM MISCONF CLUSTERDOWN MASTERDOWN TRYAGAIN BUSY NOAUTH WRONGPASS NOREPLICAS";
        for code in codes.split(' ') {
            assert_eq!(fault(code), Fault::Node);
        }
        assert_eq!(fault("Connection is closed."), Fault::Node);
        assert_eq!(fault(""), Fault::Node);
    }
}
