#!/usr/bin/env bash
# Takes away all that run.sh has made.
exec "$(dirname "$0")/fleet.sh" down
