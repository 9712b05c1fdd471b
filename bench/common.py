# SPDX-License-Identifier: MIT
"""What the benchmarks share: where things are, running, medians."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# Benchmarks that take words, not options, say what they are for.
asked = bool({"-h", "--help"} & set(sys.argv[1:]))
if asked and "argparse" not in sys.modules:
    print(sys.modules["__main__"].__doc__)
    sys.exit()

BUILD = os.environ.get("FEIGN_BUILD", os.path.join(os.path.dirname(__file__), "..", "build"))
FEIGN = os.path.join(BUILD, "core", "feign")
HERE = os.path.dirname(os.path.abspath(__file__))
if not asked and not os.access(FEIGN, os.X_OK):
    sys.exit(f"{os.path.normpath(FEIGN)} is not there: meson setup build --buildtype=release && ninja -C build, or FEIGN_BUILD=DIR")


def scratch(memory=True):
    """A directory on tmpfs (or TMPDIR), removed at the end of the `with`."""
    base = "/dev/shm" if memory and os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="feign-bench.", dir=base)


def run(*command, **how):
    return subprocess.run(list(map(str, command)), check=True, text=True, stdout=subprocess.PIPE, **how).stdout


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def replay(trace, root, *options):
    """One replay on a fresh root: the report."""
    report = json.loads(run(FEIGN, "replay", trace, "--root", fresh(root), "--json", *options))
    if report["mismatched"]:
        sys.exit(f"{trace}: {report['mismatched']} mismatches: the work was not done")
    return report


def wall(*command):
    """Seconds and peak resident MiB of a command."""
    begin = time.monotonic()
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"{command}: status {status}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def median(values):
    return statistics.median(values)


def spread(values):
    return f"{min(values):.3f}..{max(values):.3f}"
