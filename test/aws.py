"""Runs AWS CLI commands without the CLI's start, which takes most of a command's time. Puts a program aws into the given
directory, which passes its arguments to this process. Here the CLI is loaded already, and each command runs in a forked
child. Prints which Python has the CLI once it's ready, and ends when its standard input ends."""

import json
import os
import select
import signal
import socket
import sys
import threading

from awscli.clidriver import create_clidriver

PROGRAM = """#!{python} -IS
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
socket.send_fds(s, [b"."], [0, 1, 2])
s.sendall(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode() + b"\\n")
sys.exit(int(s.recv(9) or 255))
"""


def warm(session, words):
    """Loads a command's service here, so that every child has it."""
    service = {"s3api": "s3"}.get(words[0], words[0]) if words else None
    if service in session.get_available_services():
        session.create_client(service, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s")


def run(words, environment, directory, loader):
    """Runs one command, as the CLI's own main does."""
    data_path = os.environ.get("AWS_DATA_PATH")  # the CLI sets it when it's loaded
    os.environ.clear()
    os.environ.update(environment, **({"AWS_DATA_PATH": data_path} if data_path else {}))
    os.chdir(directory)
    driver = create_clidriver()
    driver.session.register_component("data_loader", loader)
    try:
        return driver.main(words)
    except SystemExit as e:
        return e.code or 0


def child(connection, descriptors, request, loader):
    for to, descriptor in enumerate(descriptors):
        os.dup2(descriptor, to)
    # End if the caller is killed.
    threading.Thread(target=lambda: connection.recv(1) or os._exit(255), daemon=True).start()
    status = 255
    try:
        status = run(*request, loader)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(status).encode())
        os._exit(0)


def main(directory):
    socket_path, program = os.path.join(directory, "socket"), os.path.join(directory, "aws")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(socket_path)
    listener.listen(64)
    with open(program, "w") as f:
        f.write(PROGRAM.format(python=sys.executable, path=socket_path))
    os.chmod(program, 0o755)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    session = create_clidriver().session
    loader = session.get_component("data_loader")
    print(sys.executable, flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        line = connection.makefile("rb").readline()
        if len(descriptors) == 3 and line.endswith(b"\n"):  # otherwise the caller was killed
            request = json.loads(line)
            warm(session, request[0][request[0][:1] == ["--endpoint-url"] and 2 or 0:])
            if os.fork() == 0:
                listener.close()
                child(connection, descriptors, request, loader)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.close()


main(sys.argv[1])
