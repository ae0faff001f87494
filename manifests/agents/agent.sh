#!/bin/sh
# A sample agent in shell: to touch the heartbeat file is to beat.
set -eu

file="${SUPERVISION_HEARTBEAT_FILE:-logs/heartbeat.json}"
pause="$(echo "${SUPERVISION_INTERVAL_SECONDS:-30}" | awk '{ print $1 / 2 }')"
mkdir -p "$(dirname "$file")"

# The first process of a container is ended by SIGTERM only if it says how, and a shell hears it
# only while it waits for a child in the background.
trap 'kill $!; exit 0' TERM INT

while :; do
  touch "$file"
  # Here is where the work would be.
  sleep "$pause" &
  wait $!
done
