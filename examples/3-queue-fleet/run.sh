#!/usr/bin/env bash
# Makes the fleet, uploads images, and follows them until all is quiet again.
set -euo pipefail
cd "$(dirname "$0")"
./fleet.sh up
./fleet.sh load "$@"
echo "./clean.sh takes all of it away"
