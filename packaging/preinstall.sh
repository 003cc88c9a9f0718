#!/bin/sh
set -e
getent group pintle >/dev/null || groupadd --system pintle
getent passwd pintle >/dev/null ||
	useradd --system --gid pintle --home-dir /var/lib/pintle --no-create-home --shell /usr/sbin/nologin pintle
