#!/usr/bin/env bash
# Every check of the project, from a fresh clone on. Two lanes, as there are two cores: cargo's and then Python's, and Node's.
# The first step that fails stops both, and is named with its whole output.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
rm -f "$LOGS"/*.log

rust_lane() {
  step "rustfmt" cargo fmt --all --check
  step "clippy" cargo clippy --workspace --all-targets --all-features -- -D warnings
  step "clippy, core without features" cargo clippy -p switchgear-core --all-targets -- -D warnings
  step "no_std probe" scripts/no-std.sh
  step "rust tests" cargo nextest run --workspace --all-features --no-fail-fast
  step "rust tests, core without features" cargo nextest run -p switchgear-core --no-fail-fast
  step "rust doc examples" cargo test --workspace --all-features --doc
  step "rustdoc" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features
  step "cargo package" cargo package -p switchgear-core -p switchgear-lua --allow-dirty --offline
}

# The suite runs on the usual Python, on the oldest and on the newest of this machine (each in another time zone, as neither may
# matter), and with each test in several threads at once.
python_lane() {
  local bin=.cache/venv/bin
  scripts/build-python.sh
  step "ruff" $bin/ruff check
  step "ruff format" $bin/ruff format --check
  step "mypy" $bin/mypy
  step "stubtest" $bin/stubtest --mypy-config-file pyproject.toml switchgear
  step "python tests" $bin/pytest
  step "python tests, oldest Python, TZ=America/New_York" env TZ=America/New_York .cache/venv-oldest/bin/pytest
  step "python tests, newest Python, TZ=Asia/Tokyo" env TZ=Asia/Tokyo .cache/venv-newest/bin/pytest
  step "python tests, each in four threads" $bin/pytest --parallel-threads=4
  step "python package" $bin/pytest tests/pack
}

cargo_and_python_lane() {
  rust_lane
  python_lane
}

node_lane() {
  scripts/build-node.sh
  step "typecheck" npm run --silent typecheck
  step "lint" npm run --silent lint
  step "node tests" npm test --silent
  step "node tests on WebAssembly" npm run --silent test:wasm
  step "WebAssembly modules" node --test --test-reporter=spec --test-concurrency=1 bindings/wasm/test/*.test.mjs
  step "browser" node --test --test-reporter=spec tests/browser/
  step "repo rules" node --test --test-reporter=spec tests/repo/rules.test.mjs
  step "package" node --test --test-reporter=spec tests/pack/pack.test.mjs
  step "examples in the docs" node --test --test-reporter=spec tests/docs/docs.test.mjs
  step "demo" node --test --test-reporter=spec demo/demo.test.mjs
  step "typescript docs" npm run --silent docs
}

# Starts a lane in a process group of its own, so that it can be ended with all it started.
lane() {
  set -m
  "$1" &
  set +m
}

finish() {
  local status=$1
  say ""
  node scripts/closing-lines.mjs "$LOGS"/*.log
  exit "$status"
}

stop_lanes() {
  kill -- -"$rust" -"$node" 2>/dev/null || true
  wait 2>/dev/null || true
  finish 1
}

scripts/setup.sh
scripts/python.sh all
need cargo-nextest "cargo install cargo-nextest"

lane cargo_and_python_lane
rust=$!
lane node_lane
node=$!
trap 'kill -- -$rust -$node 2>/dev/null || true' EXIT

# Whichever lane ends first, then the other.
wait -n -p first "$rust" "$node" || stop_lanes
[ "$first" = "$rust" ] && second=$node || second=$rust
wait "$second" || stop_lanes
step "vectors" scripts/vectors.sh || finish 1
step "runners of the vectors" node --test --test-reporter=spec tests/runners/ || finish 1
finish 0
