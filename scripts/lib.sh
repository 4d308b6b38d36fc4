# Sourced by the other scripts: where things go, and how a step is run, timed and named.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=$ROOT/.cache
LOGS=$CACHE/logs
STAMPS=$CACHE/stamps
mkdir -p "$LOGS" "$STAMPS"
export CARGO_TERM_COLOR=never NO_COLOR=1

# say TEXT: one line of progress. Two lanes print at once, so a line is one write.
say() { printf '%s\n' "$*"; }

# step NAME COMMAND...: runs it with its output in a log; prints name and seconds; on failure the whole log, and status 1.
step() {
  local name=$1 log=$LOGS/${1//[^A-Za-z0-9]/-}.log begin=$EPOCHREALTIME status=0
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  local seconds
  seconds=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begin }")
  if [ "$status" -eq 0 ]; then
    say "$(printf 'ok    %6s s  %s' "$seconds" "$name")"
    return 0
  fi
  {
    printf 'FAIL  %6s s  %s (exit %s): %s\n' "$seconds" "$name" "$status" "$*"
    sed 's/^/      | /' "$log"
    printf 'FAIL  %s; its output is above and in %s\n' "$name" "${log#"$ROOT"/}"
  } >&2
  return 1
}

# hash_of PATH...: one hash over names and contents of the tracked and new files below these paths.
hash_of() {
  git -C "$ROOT" ls-files -z --cached --others --exclude-standard -- "$@" |
    (cd "$ROOT" && xargs -0 -r sh -c 'for f; do [ ! -f "$f" ] || sha256sum "$f"; done' sh) | sha256sum | cut -d' ' -f1
}

# once NAME PRODUCT INPUT... -- COMMAND...: runs the command unless PRODUCT exists and was made from the same inputs.
once() {
  local name=$1 product=$2 inputs=() hash
  shift 2
  while [ "$1" != -- ]; do inputs+=("$1"); shift; done
  shift
  hash=$(hash_of "${inputs[@]}")
  if [ -e "$ROOT/$product" ] && [ "$(cat "$STAMPS/$name" 2>/dev/null)" = "$hash" ]; then
    say "$(printf 'done             %s' "$name")"
    return 0
  fi
  rm -f "$STAMPS/$name"
  step "$name" "$@" || return 1
  printf '%s\n' "$hash" >"$STAMPS/$name"
}

# need COMMAND HOW: stops, naming what is missing and how one gets it.
need() {
  command -v "$1" >/dev/null 2>&1 && return 0
  printf 'switchgear: `%s` is not on this machine: %s\n' "$1" "$2" >&2
  return 1
}

# apt_install PACKAGE...: installs Debian packages, as root or through sudo.
apt_install() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || { need sudo "run as root, or install $* by hand" && as_root=(sudo); } || return 1
  need apt-get "install $* by hand" || return 1
  export DEBIAN_FRONTEND=noninteractive
  local install=("${as_root[@]}" apt-get install -y --no-install-recommends "$@")
  # A new machine has no package lists yet, an old one has stale ones: fetch them only when the install needs them.
  "${install[@]}" || { "${as_root[@]}" apt-get update && "${install[@]}"; }
}
