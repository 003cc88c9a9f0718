#!/bin/sh
set -e
chown root:pintle /etc/pintle/pintle.env
chmod 0640 /etc/pintle/pintle.env
chmod 0600 /etc/pintle/agent.env
install -d -m 0700 -o pintle -g pintle /var/lib/pintle /var/backups/pintle
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart pintle.service pintle-agent.service
fi
