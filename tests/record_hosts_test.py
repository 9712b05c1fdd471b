#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign record --mpi over several hosts: each has its records, and its clock is brought to the first one's."""
import json
import os
import shutil
import struct
import subprocess
import sys

from harness import BUILD, FEIGN, Skip, Tmp, feign, main, sanitized
from recording import compile_text, needs_capture

PROGRAM = """#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 10; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(10000);
  }
  MPI_Finalize();
  return 0;
}
"""


def recorded(tmp):
    """A raw folder of four ranks on two hosts: what mpirun takes for another one is this under another name."""
    if not shutil.which("mpirun") or not shutil.which("mpicc"):
        raise Skip("no Open MPI")
    if not os.path.exists(os.path.join(BUILD, "capture", "libfeign-capture-mpi.so")) or sanitized():
        raise Skip("no capture library for MPI in this build")
    if subprocess.run(["unshare", "--uts", "hostname", "other"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no host names of one's own without root")
    program, agent, trace = (os.path.join(tmp, name) for name in ("program", "agent", "t.feign"))
    with open(program + ".c", "w", encoding="ascii") as f:
        f.write(PROGRAM)
    subprocess.run(["mpicc", "-o", program, program + ".c"], check=True)
    with open(agent, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nh=$1; shift\nexec unshare --uts sh -c \"hostname $h; exec $*\"\n")
    os.chmod(agent, 0o755)
    command = [FEIGN, "record", "--mpi", "--keep-raw", "-o", trace, "--", "mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent", agent,
               "--mca", "mpi_yield_when_idle", "1", "--host", os.uname().nodename + ":2,feign-other:2", "-np", "4", program]
    try:
        done = subprocess.run(command, cwd=tmp, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90, check=False)
    except subprocess.TimeoutExpired as e:
        raise Skip("mpirun does not come up with two hosts here") from e
    if done.returncode and not os.path.exists(trace + ".raw/records.feign-other"):
        raise Skip("mpirun does not run on two hosts here: " + done.stdout[-200:])
    assert done.returncode == 0, done.stdout[-500:]
    return trace


def firsts(path):
    info = json.loads(feign("info", path, "--json").out)
    return {(s["host"], s["rank"], s["thread"], s["stream"]): s["first_seconds"] for s in info["streams"]}, info


def test_hosts():
    with Tmp() as tmp:
        trace = recorded(tmp)
        before, info = firsts(trace)
        here = os.uname().nodename
        assert {(host, rank) for host, rank, _, _ in before if rank >= 0} == {(here, 0), (here, 1), ("feign-other", 2), ("feign-other", 3)}, before
        clock = [l["why"] for l in info["left_out"] if l["call"] == "clock"]
        assert len(clock) == 1 and clock[0].startswith("feign-other: measured at both ends") and "exact to" in clock[0], info["left_out"]
        # As if that host's counter were another one: no moment may move.
        shift = 123456789012
        with open(trace + ".raw/records.feign-other", "r+b") as f:
            control = bytearray(f.read(4096))
            for at in (16, 2720, 2744):   # tick_0, aligned[].tick
                struct.pack_into("<Q", control, at, struct.unpack_from("<Q", control, at)[0] + shift)
            f.seek(0)
            f.write(control)
            at = first = struct.unpack_from("<Q", control, 2648)[0]
            used = struct.unpack_from("<Q", control, 72)[0]
            chunks = 0
            while at < used:
                f.seek(at)
                head = bytearray(f.read(64))
                magic, size = struct.unpack_from("<II", head)
                if magic != 0x4b4e4843:
                    at = (at // 4096 + 1) * 4096
                    continue
                for field in (24, 32):    # tick, began
                    struct.pack_into("<Q", head, field, struct.unpack_from("<Q", head, field)[0] + shift)
                f.seek(at)
                f.write(head)
                chunks += 1
                at += (size + 7) // 8 * 8
            assert first == 4096 and chunks > 4, (first, chunks)
        after, _ = firsts(trace + ".raw")
        assert before.keys() == after.keys()
        assert all(abs(after[k] - before[k]) < 1e-6 for k in before), [(k, before[k], after[k]) for k in before if abs(after[k] - before[k]) >= 1e-6][:3]


SILENT = """#include <stdlib.h>
#include <sys/prctl.h>
int main(void) {
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  _Exit(0);
}
"""


def test_what_was_counted_on_one_host_is_not_told_of_another():
    """Nor does a process end that may not make its host's file, or leave something that nobody can read."""
    needs_capture()
    if subprocess.run(["unshare", "--uts", "hostname", "other"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no host names of one's own without root")
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.feign")
        compile_text(SILENT, os.path.join(tmp, "silent"))
        on_other = 'unshare --uts sh -c "hostname other; {} true" || exit 1'
        script = "./silent; " + on_other.format("(ulimit -f 0; exec true) &&") + "; " + on_other.format("(ulimit -f 2000; exec true) &&")
        r = feign("record", "--keep-raw", "-o", trace, "--", "sh", "-c", script, cwd=tmp)
        assert r.status == 0 and r.err.count("is not recorded to its end") == 1, (r.status, r.err)
        assert sorted(os.listdir(trace + ".raw")) == ["hooks", "records", "records.other"], os.listdir(trace + ".raw")
        with open(trace + ".raw/making.third.1", "wb"):
            pass
        assert feign("info", trace + ".raw").status == 0


# Each is process 1 of its host.
LOCKS = """
import fcntl, os, sys, time
fd = os.open("f", os.O_RDWR | os.O_CREAT)
if sys.argv[1] == "one":
    fcntl.lockf(fd, fcntl.LOCK_EX)
    os.close(os.open("locked", os.O_WRONLY | os.O_CREAT))
    while not os.path.exists("over"):
        time.sleep(0.01)
else:
    while not os.path.exists("locked"):
        time.sleep(0.01)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(os.open("over", os.O_WRONLY | os.O_CREAT))
"""


def test_processes_of_two_hosts_with_one_number_have_locks_of_their_own():
    if not os.path.exists(os.path.join(BUILD, "capture", "libfeign-capture.so")):
        raise Skip("no capture library in this build")
    if subprocess.run(["unshare", "-ufp", "hostname", "other"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no host names or PID namespaces of one's own without root")
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.feign"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(os.path.join(tmp, "locks.py"), "w", encoding="ascii") as f:
            f.write(LOCKS)
        script = 'for h in one two; do unshare -ufp sh -c "hostname $h; exec $0 -S locks.py $h" & done; wait'
        r = feign("record", "-o", trace, "--", "sh", "-c", script, sys.executable, cwd=tmp)
        ops = feign("info", trace, "--json").json()["ops"]
        assert r.status == 0 and os.path.exists(os.path.join(tmp, "over")) and ops["fcntl"]["failed"] >= 1, (r.out, r.err, ops)
        report = feign("replay", trace, "--root", root, "--order", "depend", "--json").json()
        assert report["mismatched"] == 0, report["mismatches"]


if __name__ == "__main__":
    main(globals())
