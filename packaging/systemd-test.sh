#!/bin/bash
# Boots systemd in a Debian root and has it run the package's units: control plane and agent start, doctor finds nothing to do, a task runs, a
# killed control plane starts again, a backup is made, and the removed package leaves nothing but the data. Then the .rpm is installed and
# removed there by rpm. Needs root, systemd-nspawn and rpm. Usage: packaging/systemd-test.sh ROOT, which has systemd and not the package.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$1
say() { echo "== $*"; }

cp "$(ls dist/pintle_*.deb | tail -1)" "$root/root/pintle.deb"
cat >"$root/root/test.sh" <<'TEST'
#!/bin/bash
set -euo pipefail
say() { echo "== $*"; }
eventually() { for _ in $(seq 300); do if "$@" >/tmp/out 2>&1; then return; fi; sleep 0.2; done; cat /tmp/out; echo "not within a minute: $*"; exit 1; }
trap '[ $? = 0 ] || journalctl -u pintle -u pintle-agent -u pintle-backup --no-pager | tail -40' EXIT

say install
dpkg -i /root/pintle.deb
[ "$(systemctl is-enabled pintle || true)" = disabled ]
[ "$(systemctl is-enabled pintle-backup.timer || true)" = disabled ]

say "the control plane's unit"
systemctl enable --now pintle
eventually pintle health
[ "$(ps -o user= -p "$(systemctl show -P MainPID pintle)")" = pintle ]
runuser -u pintle -- pintle doctor --for control-plane --data /var/lib/pintle --endpoint http://127.0.0.1:4566

say "the agent's unit, and a task"
echo 'PINTLE_AGENT_FLAGS=--endpoint http://127.0.0.1:4566 --runtime process' >/etc/pintle/agent.env
systemctl start pintle-agent
eventually pintle run busybox echo hello-from-a-task
grep -q hello-from-a-task /tmp/out
pintle run --name long busybox sleep 1000 >/dev/null 2>&1 &
runs() { pintle ps | grep -q RUNNING; }
eventually runs

say "a killed control plane starts again, and its agent outlives its restart with the task"
systemctl kill --signal=KILL pintle
again() { [ "$(systemctl show -P NRestarts pintle)" = 1 ] && pintle health; }
eventually again
sleeper=$(pgrep -x sleep -a | awk '/ 1000$/ { print $1; exit }')
systemctl restart pintle-agent
kill -0 "$sleeper"
eventually runs

say "a nightly backup"
systemctl start pintle-backup.service
[ "$(stat -c '%U %a' /var/backups/pintle/pintle-*.tar)" = 'pintle 600' ]
systemctl enable --now pintle-backup.timer
systemctl is-active pintle-backup.timer

say remove
dpkg --purge pintle
! systemctl is-active pintle pintle-agent pintle-backup.timer
left=$(find /usr /etc /lib/systemd -name '*pintle*' -not -path '/usr/share/doc/*')
[ -z "$left" ] || { echo "left are: $left"; exit 1; }
[ -e /var/lib/pintle/state.db ]
[ -d /var/lib/pintle-agent ]
say passed
TEST
cat >"$root/etc/systemd/system/test.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=300
Environment=HOME=/root
StandardOutput=append:/root/said
StandardError=append:/root/said
ExecStart=/bin/bash /root/test.sh
ExecStopPost=/bin/systemctl poweroff --no-block
[Install]
WantedBy=multi-user.target
UNIT
rm -f "$root/root/said"
chroot "$root" systemctl enable test.service
timeout 400 systemd-nspawn -D "$root" --boot --register=no --keep-unit --private-network --console=pipe --machine=pintle-test </dev/null || true
cat "$root/root/said"
tail -1 "$root/root/said" | grep -qx '== passed'
rm "$root/etc/systemd/system/test.service" "$root"/etc/systemd/system/*.wants/test.service

say "the .rpm, by rpm"
rpm=$(ls dist/pintle-*.rpm | tail -1)
rm -rf "$root/var/lib/pintle" "$root/var/lib/pintle-agent"
cp "$rpm" "$root/root/pintle.rpm"
manage() { rpm --root "$root" --dbpath /var/lib/rpm-test "$@"; }
manage -i --nodeps "$rpm" # Debian's packages aren't in rpm's books
manage -V --nodeps --nogroup pintle # postinstall gives the settings to the group
chroot "$root" pintle version
[ "$(stat -c %a "$root/var/lib/pintle")" = 700 ]
manage -e --nodeps pintle
left=$(find "$root/usr" "$root/etc" -name '*pintle*' -not -path '*/share/doc/*')
[ -z "$left" ] || { echo "left are: $left"; exit 1; }
[ -d "$root/var/lib/pintle" ]
say "all went well"
