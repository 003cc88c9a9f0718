"""Runs AWS CLI commands without the CLI's start, which takes most of a command's time. Puts a program aws into the given
directory, which passes its arguments to this process. Here the CLI is loaded already, and each command runs in a forked
child. Prints which Python has the CLI once it's ready, and ends when its standard input ends."""

import gc
import marshal
import os
import select
import signal
import socket
import sys
import threading

from awscli.clidriver import create_clidriver

# It imports nothing but built-in modules, since tests start it thousands of times.
PROGRAM = """#!{python} -IS
import _socket, marshal, posix, sys
s = _socket.socket(_socket.AF_UNIX)
s.connect({path!r})
descriptors = b"".join(n.to_bytes(4, sys.byteorder) for n in (0, 1, 2))
s.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
request = marshal.dumps((sys.argv[1:], posix.environ, posix.getcwd()))
s.sendall(len(request).to_bytes(8, "big") + request)
sys.exit(int(s.recv(9) or 255))
"""


class Loaded:
    """The CLI as far as it can be loaded before a command is known, for all children."""

    # A command with other values than ours may have another configuration, and loads it itself.
    configuration = [b"HOME", b"AWS_CONFIG_FILE", b"AWS_DATA_PATH", b"AWS_PROFILE", b"AWS_DEFAULT_PROFILE"]

    def __init__(self):
        self.driver = create_clidriver()
        self.loader = self.driver.session.get_component("data_loader")
        self.commands = self.driver._get_command_table()
        self.values = [os.environb.get(name) for name in self.configuration]
        self.services = set()

    def warm(self, words):
        """Loads a command's service, once."""
        name = words[2 if words[:1] == ["--endpoint-url"] else 0 :][:1]
        if not name or name[0] in self.services or name[0] not in self.commands:
            return  # it's loaded, or there is none
        self.services.add(name[0])
        service = {"s3api": "s3"}.get(name[0], name[0])
        session = self.driver.session
        if service in session.get_available_services():
            session.create_client(service, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s")
            for kind in "paginators-1", "waiters-2":
                if service in self.loader.list_available_services(kind):
                    self.loader.load_service_model(service, kind)
        gc.collect()
        gc.freeze()  # the children share the memory

    def for_command(self, environment):
        """Returns the CLI for a command in a child."""
        if [environment.get(name) for name in self.configuration] == self.values:
            return self.driver
        driver = create_clidriver()
        driver.session.register_component("data_loader", self.loader)
        return driver


def run(words, environment, directory, loaded):
    """Runs one command, as the CLI's own main does."""
    data_path = os.environb.get(b"AWS_DATA_PATH")  # the CLI sets it when it's loaded
    os.environb.clear()
    os.environb.update(environment)
    os.environb.update({b"AWS_DATA_PATH": data_path} if data_path else {})
    os.chdir(directory)
    try:
        return loaded.for_command(os.environb).main(words)
    except SystemExit as e:
        return e.code or 0


def child(connection, descriptors, request, loaded):
    for to, descriptor in enumerate(descriptors):
        os.dup2(descriptor, to)
    # End if the caller is killed.
    threading.Thread(target=lambda: connection.recv(1) or os._exit(255), daemon=True).start()
    status = 255
    try:
        status = run(*request, loaded)
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
    loaded = Loaded()
    print(sys.executable, flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        stream = connection.makefile("rb")
        size = int.from_bytes(stream.read(8), "big")
        packed = stream.read(size)
        if len(descriptors) == 3 and 0 < size == len(packed):  # otherwise the caller was killed
            request = marshal.loads(packed)
            loaded.warm(request[0])
            if os.fork() == 0:
                listener.close()
                child(connection, descriptors, request, loaded)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.close()


main(sys.argv[1])
