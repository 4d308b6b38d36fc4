#!/usr/bin/env bash
# The Python of the tests: .cache/venv, with the packages of bindings/python/requirements.txt, and older Redis clients beside it.
# PYTHON names another interpreter than `python3`; a change of interpreter makes the venv anew. Arguments: `all` adds
# .cache/venv-oldest and .cache/venv-newest, of the oldest and the newest Python of this machine that the package supports;
# `bench` adds .cache/bench-venv, with what only the benchmark needs.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

PYTHON=${PYTHON:-python3}
WANTED='import sys; raise SystemExit(sys.version_info < (3, 10))'
IDENTITY='import sys; print(sys.version, sys.base_prefix)'
CLIENTS=.cache/clients

# `step` looks at a function's status, so each command below says for itself that its failure ends it.
make_venv() {
  local venv=$1 python=$2 packages
  "$python" -m venv --clear "$venv" || return 1
  pip_install "$venv" --require-hashes -r "$3" || return 1
  # The package is used from where its sources are: an edit needs no install.
  packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 1
  printf '%s\n' "$ROOT/bindings/python" >"$packages/switchgear.pth"
}

make_clients() {
  local pinned name version
  rm -rf "$CLIENTS"
  while read -r pinned; do
    name=${pinned%%==*} version=${pinned#*==}
    pip_install .cache/venv --no-deps --target "$CLIENTS/$name-${version%%.*}" "$pinned" || return 1
  done < <(grep -E '^[a-z]' bindings/python/requirements-clients.txt)
}

pip_install() { "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"; }

# venv NAME PYTHON [REQUIREMENTS]: .cache/NAME, made of this interpreter unless it is there already.
venv() {
  local folder=.cache/$1 requirements=${3:-bindings/python/requirements.txt}
  if [ "$("$folder/bin/python" -c "$IDENTITY" 2>/dev/null)" != "$("$2" -c "$IDENTITY")" ]; then rm -rf "$folder"; fi
  once "python packages ($1)" "$folder/bin/python" "$requirements" -- make_venv "$folder" "$2" "$requirements"
}

# also NAME PYTHON: the same, but a link to .cache/venv where that is of this interpreter.
also() {
  if [ "$("$2" -c "$IDENTITY")" != "$("$PYTHON" -c "$IDENTITY")" ]; then
    [ ! -L ".cache/$1" ] || rm ".cache/$1"
    venv "$1" "$2"
  else
    rm -rf ".cache/$1"
    ln -s venv ".cache/$1"
  fi
}

# Debian's python3 comes without what makes a venv.
command -v "$PYTHON" >/dev/null 2>&1 && "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
  step "install python3-venv" apt_install python3-venv
"$PYTHON" -c "$WANTED" 2>/dev/null || {
  printf 'switchgear: `%s` is %s: install Python 3.10 or later, or name one: PYTHON=python3.12 make ...\n' \
    "$PYTHON" "$("$PYTHON" --version 2>/dev/null || echo 'not on this machine')" >&2
  exit 1
}
# Without it a TZ is silently UTC, and the tests in other time zones would show nothing.
[ -e /usr/share/zoneinfo/Asia/Tokyo ] || step "install tzdata" apt_install tzdata

venv venv "$PYTHON"
once "older redis clients" "$CLIENTS" bindings/python/requirements-clients.txt -- make_clients
if [ "${1:-}" = all ]; then
  pythons=$(scripts/pythons.sh)
  also venv-oldest "$(head -n 1 <<<"$pythons" | cut -d' ' -f2-)"
  also venv-newest "$(tail -n 1 <<<"$pythons" | cut -d' ' -f2-)"
fi
if [ "${1:-}" = bench ]; then venv bench-venv "$PYTHON" bench/python/requirements.txt; fi
