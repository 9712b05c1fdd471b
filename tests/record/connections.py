# SPDX-License-Identifier: MIT
"""Two processes that tell each other over a connection when a file is there.
usage: connections.py unix|tcp|mapped       mapped: an IPv6 socket that IPv4 connects to, without waiting"""
import os
import select
import socket
import sys

KIND = sys.argv[1]
UNIX = KIND == "unix"


def put(name, text):
    with open(name, "w", encoding="ascii") as f:
        f.write(text)


def got(name):
    with open(name, encoding="ascii") as f:
        return f.read()


listener = socket.socket({"unix": socket.AF_UNIX, "tcp": socket.AF_INET, "mapped": socket.AF_INET6}[KIND])
listener.bind("name" if UNIX else ("::" if KIND == "mapped" else "127.0.0.1", 0))
listener.listen()
address = "name" if UNIX else ("127.0.0.1", listener.getsockname()[1])
if os.fork() == 0:
    listener.close()
    client = socket.socket(socket.AF_UNIX if UNIX else socket.AF_INET)
    put("wish", "a connection")
    client.setblocking(KIND != "mapped")
    if client.connect_ex(address) != 0:
        select.select([], [client], [])
        client.setblocking(True)
    put("question", "what is it?")
    client.sendall(b"there is a question")
    assert client.recv(100) and got("answer") == "42"
    os.remove("answer")
    put("last", "of it")
    os._exit(0)
server, _ = listener.accept()
assert got("wish")
assert server.recv(100) and got("question")
put("answer", "42")
os.write(server.fileno(), b"there is an answer")
assert server.recv(100) == b"" and got("last")
os.wait()
