# SPDX-License-Identifier: MIT
"""The programs of tests/apps/silent, and whether the dependencies that were found are those that they logged."""
import collections
import json
import os
import shutil
import struct
import subprocess

from harness import Skip, TOP

MODES = ["pseudosync", "pseudosyncdat", "pseudo", "fitness", "pipeline", "masterworker", "halo"]


def mpirun(nodes):
    """How a program is started on so many ranks."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        raise Skip("mpicc and mpirun are not there")
    return ["mpirun", "--oversubscribe", "-np", str(nodes)] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def build(folder, mpi=False):
    """Compiles the programs into `folder`; the path. With `mpi` they send messages."""
    program = os.path.join(folder, "silent-mpi" if mpi else "silent")
    try:
        subprocess.run([*(["mpicc", "-DWITH_MPI"] if mpi else ["cc"]), "-O1", "-pthread", "-o", program, os.path.join(TOP, "tests", "apps", "silent", "silent.c")],
                       check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skip(f"no C compiler: {error}") from None
    return program


def data(folder):
    """A folder with the file that fitness reads."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "data.0"), "wb") as f:
        f.write(b"\7" * (16 * 64 * 4096))
    return folder


class Order:
    """What had ended before each call, by dependencies (node, call, on node, on call) and the order within nodes."""

    def __init__(self, edges):
        self.edges = collections.defaultdict(list)
        for node, call, on, on_call in edges:
            self.edges[node].append((call, on, on_call))
        for list_ in self.edges.values():
            list_.sort()
        self.known = {}

    def before(self, node, call):
        """By node: its last call that had ended before this one began."""
        last = [e for e in self.edges[node] if e[0] <= call]
        key = (node, len(last))
        if key not in self.known:
            out = {}
            for _, on, on_call in last:
                for other, at in self.before(on, on_call).items():
                    out[other] = max(out.get(other, -1), at)
                out[on] = max(out.get(on, -1), on_call)
            self.known[key] = out
        return self.known[key]

    def implies(self, edge):
        return self.before(edge[0], edge[1]).get(edge[2], -1) >= edge[3]


def found(report):
    return {(d["node"], d["call"], d["on_node"], d["on_call"]) for d in report["dependencies"]}


def truth(folder, report):
    calls = {n["node"]: n["calls"] for n in report["nodes"]}
    with open(os.path.join(folder, "truth"), encoding="ascii") as f:
        edges = {tuple(map(int, line.split())) for line in f}
    return {e for e in edges if e[1] < calls[e[0]]}


def broken(activities, edges):
    """True orders that a replay broke, by its log of activities (docs/lab-format.md): what was waited for ended later."""
    with open(activities, "rb") as f:
        data = f.read()
    count, names_at = struct.unpack_from("<QQ", data, 16)
    process = {int(op) for op, what in json.loads(data[names_at:])["ops"].items() if what["kind"] == 12}
    calls = collections.defaultdict(list)   # by stream; nodes are in the order of streams
    for i in range(count):
        start, took, _, _, _, id_, stream, op, _, _ = struct.unpack_from("<QQQQqQIIII", data, 48 + 64 * i)
        if op not in process:
            calls[stream].append((id_, start, start + took))
    nodes = [sorted(calls[stream]) for stream in sorted(calls)]
    return [e for e in edges if nodes[e[0]][e[1]][1] < nodes[e[2]][e[3]][2]]


def compare(folder, report):
    """True ones that do not follow from those found, false ones among those found, and the least number that says all."""
    ours, real = found(report), truth(folder, report)
    by_ours, by_real = Order(ours), Order(real)
    missed = sorted(e for e in real if not by_ours.implies(e))
    wrong = sorted(e for e in ours if not by_real.implies(e))
    least = sum(not Order(real - {e}).implies(e) for e in real)
    return missed, wrong, least


def leave_out(folder):
    """Options: what the program writes about itself is no part of it."""
    return [word for name in ("truth", "broken") for word in ("--exclude", os.path.join(folder, name))]


def load(out):
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        return json.load(f)
