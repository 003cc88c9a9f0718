#!/bin/bash
# Installs dist/*.deb in a clean Debian root, runs the control plane as its unit's user with its unit's command, has it pass pintle doctor and run a
# task, and removes the package: nothing but the data stays. Needs root, debootstrap, systemd-nspawn and rpm. systemd doesn't run in a chroot:
# systemd-test.sh follows, in the same root. Usage: packaging/test.sh [ROOT], a root that debootstrap has made already.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in debootstrap systemd-nspawn rpm; do
	command -v "$tool" >/dev/null || { echo "this needs $tool: apt install debootstrap systemd-container rpm" >&2; exit 1; }
done
deb=$(ls dist/pintle_*.deb | tail -1)
root=${1:-}
port=${PORT:-21466}
work=$(mktemp -d)
server= agent=
end() {
	[ -z "$agent$server" ] || kill $agent $server 2>/dev/null || true
	! mountpoint -q "$root/proc" || umount "$root/proc"
	rm -rf "$work"
}
trap end EXIT
if [ -z "$root" ]; then
	root=$work/root
	debootstrap --variant=minbase --include=ca-certificates,dbus,procps,systemd,systemd-sysv bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}"
fi
within() { chroot "$root" "$@"; }
say() { echo "== $*"; }

mount -t proc proc "$root/proc"
cp "$deb" "$root/tmp/pintle.deb"
say install
within dpkg -i /tmp/pintle.deb
within id pintle
[ "$(stat -c %a "$root/var/lib/pintle")" = 700 ]
if command -v systemd-analyze >/dev/null; then
	for unit in pintle pintle-agent pintle-backup; do # the program isn't on this machine
		sed 's,^ExecStart=.*,ExecStart=/bin/true,' "$root/usr/lib/systemd/system/$unit.service" >"$work/$unit.service"
	done
	cp "$root/usr/lib/systemd/system/pintle-backup.timer" "$work/"
	systemd-analyze verify "$work"/*.service "$work"/*.timer
fi

say "the unit's command, as the unit's user"
flags=$(sed -n 's/^PINTLE_SERVE_FLAGS=//p' "$root/etc/pintle/pintle.env")
command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/pintle.service")
[ "$command" = '/usr/bin/pintle serve --data /var/lib/pintle $PINTLE_SERVE_FLAGS' ]
chroot --userspec=pintle:pintle "$root" /usr/bin/pintle serve --data /var/lib/pintle ${flags/4566/$port} &
server=$!
up=
for _ in $(seq 100); do
	if within pintle ps --endpoint "http://127.0.0.1:$port" >/dev/null 2>&1; then up=1; break; fi
	sleep 0.1
done
[ -n "$up" ]

say doctor
chroot --userspec=pintle:pintle "$root" pintle doctor --for control-plane --data /var/lib/pintle --listen "127.0.0.1:$port" --endpoint "http://127.0.0.1:$port"

say "a task"
# Not by the function: its shell would be what ends, and not the agent.
chroot "$root" pintle agent --endpoint "http://127.0.0.1:$port" --runtime process --data /tmp/agent >"$root/tmp/agent.log" 2>&1 &
agent=$!
for _ in $(seq 100); do
	if within pintle run --endpoint "http://127.0.0.1:$port" busybox echo hello-from-a-task >"$root/tmp/run" 2>&1; then break; fi
	sleep 0.2
done
grep -q hello-from-a-task "$root/tmp/run"
kill "$agent"
wait "$agent" || true
kill "$server"
wait "$server" || true
server= agent=

say "installed again, without the settings that somebody has deleted"
rm "$root/etc/pintle/pintle.env" "$root/etc/pintle/agent.env"
within dpkg -i /tmp/pintle.deb
[ ! -e "$root/etc/pintle/pintle.env" ] && [ ! -e "$root/etc/pintle/agent.env" ]

say remove
within dpkg --purge pintle
left=$(cd "$root" && find usr etc -name '*pintle*' -not -path 'usr/share/doc/*')
[ -z "$left" ] || { echo "left are: $left"; exit 1; }
[ -e "$root/var/lib/pintle/state.db" ]
umount "$root/proc"
rm -rf "$root/var/lib/pintle"

say "the units, by systemd"
packaging/systemd-test.sh "$root"
say "all went well: what is left is the data"
