#!/bin/sh
set -e
# Settings that somebody has deleted stay deleted in an upgrade.
if [ -e /etc/pintle/pintle.env ]; then
	chown root:pintle /etc/pintle/pintle.env
	chmod 0640 /etc/pintle/pintle.env
fi
if [ -e /etc/pintle/agent.env ]; then chmod 0600 /etc/pintle/agent.env; fi
install -d -m 0700 -o pintle -g pintle /var/lib/pintle /var/backups/pintle
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart pintle.service pintle-agent.service
fi
