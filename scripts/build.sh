#!/usr/bin/env bash
# Both packages, ready to import.
set -euo pipefail
cd "$(dirname "$0")"
./build-node.sh
./build-python.sh
