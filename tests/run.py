#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs all tests (called by ./run-tests, which installs what is needed first).

Each build is a folder build-NAME; a second run only builds what changed. Every program that tests
prints its own counts: GoogleTest's, or "N passed, N failed[, N skipped]" as the last line.
"""
import argparse
import concurrent.futures
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def checked(sanitizers, compiler=(), link=()):
    """Sanitized code is slow to compile as well: little optimized, with no more than lines to show, several files at a time."""
    args = ["-g1", *compiler]
    return ["--buildtype=plain", "-Doptimization=1", "-Dunity=on", "-Dunity_size=8", "-Db_lundef=false", f"-Db_sanitize={sanitizers}",
            f"-Dcpp_args={args}", f"-Dc_args={args}", f"-Dcpp_link_args={list(link)}", f"-Dc_link_args={list(link)}"]


def shared_runtime():
    """Plug-ins leave no symbol open (-z defs): clang's run-time library has to be one that they are linked with."""
    asked = subprocess.run(["clang", f"-print-file-name=libclang_rt.asan-{platform.machine()}.so"], stdout=subprocess.PIPE, check=False)
    return ["-shared-libsan", "-Wl,-rpath," + os.path.dirname(asked.stdout.decode().strip())]


# Checks of UBSan that cost most, to compile and at every start: address finds what most of them do, and x86 reads what
# is not aligned. (function: what C calls by a pointer is no C++.)
ON_EVERY_POINTER = ["null", "alignment", "object-size", "vptr", "nonnull-attribute", "returns-nonnull-attribute", "function"]
# With them, much of what clang compiles is code that was put into its callers: it is not.
QUICKER = [*(f"-fno-sanitize={name}" for name in ON_EVERY_POINTER), "-fno-inline-functions"]
# The compilers both build all: gcc as users do, clang with its ASan+UBSan, which checks more (enumerations).
BUILDS = {
    "gcc": (dict(CC="gcc", CXX="g++"), lambda: ["--buildtype=release"]),
    "asan": (dict(CC="clang", CXX="clang++"), lambda: checked("address,undefined", QUICKER, shared_runtime())),
    "tsan": (dict(CC="gcc", CXX="g++"), lambda: checked("thread")),
}
# What runs where: "all" is GoogleTest and the tests of whole commands, "threads" of these those that run streams on threads
# in recorded order. (Without an order, a trace's own calls race for its own descriptors, and ThreadSanitizer says so.)
STEPS = [("gcc", "all"), ("asan", "all"), ("tsan", "threads")]


# Those that have a build of their own; those that take longest, to be begun first.
ONCE = ["fuzz_test.py"]
LONG = ("fuzz_", "record_", "discover_", "mpi_", "programs_", "lab_")
# Whose programs race with each other and with whatever else runs here, on real hosts, launchers and clocks: what failed there is tried a second time
# when all else has run, and said.
RACES = ("record_", "strace_", "discover_", "mpi_", "programs_", "pace_", "equivalence_", "depend_")
THREADED = ["test_every_pace_in_recorded_order_gives_full_fidelity", "test_native_format_replays_as_the_text_does",
            "test_ctrl_c_ends_a_replay_with_a_report"]


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.bad = []
        self.again = []

    def add(self, name, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if failed:
            self.bad.append(name)


def say(text):
    print(text, flush=True)


def build(name):
    env, options = BUILDS[name]
    folder = os.path.join(TOP, f"build-{name}")
    log = os.path.join(TOP, f"build-{name}.log")
    with open(log, "w", encoding="utf-8") as out:
        if not os.path.exists(os.path.join(folder, "build.ninja")):
            shutil.rmtree(folder, ignore_errors=True)
            # Here a warning is an error; where other compilers warn of more, a user has a build all the same.
            done = subprocess.run(["meson", "setup", folder, TOP, "-Dtests=enabled", "-Dwerror=true", *options()],
                                  env={**os.environ, **env}, stdout=out, stderr=subprocess.STDOUT)
            if done.returncode:
                return None, log
        done = subprocess.run(["ninja", "-k", "0", "-C", folder], stdout=out, stderr=subprocess.STDOUT)
    return (folder if done.returncode == 0 else None), log


def output_of(command, env, limit):
    # Temporary files of its own: two mpirun that make their common directory at once may fail.
    with tempfile.TemporaryDirectory(prefix="feign-tests.", ignore_cleanup_errors=True) as tmp:
        os.chmod(tmp, 0o755)  # some tests are another user for a while
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit,
                                  env={**os.environ, "TMPDIR": tmp, **(env or {})}, cwd=TOP, stdin=subprocess.DEVNULL)
            return done.stdout.decode("utf-8", "replace"), done.returncode
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode("utf-8", "replace") + "\n(took too long)", -1


def run(command, counts, name, env=None, limit=900, second=False):
    """Runs one test program; reads its counts from what it prints. What is to be tried once more is put aside in `counts`."""
    begin = time.monotonic()
    text, status = output_of(command, env, limit)
    gtest = re.findall(r"\[  PASSED  \] (\d+) tests?", text)
    plain = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", text, re.M)
    if gtest:
        skipped = sum(map(int, re.findall(r"\[  SKIPPED \] (\d+) tests?, listed", text)))
        failed = sum(map(int, re.findall(r"\[  FAILED  \] (\d+) tests?, listed", text)))
        passed = int(gtest[0])
    elif plain:
        passed, failed, skipped = int(plain[-1][0]), int(plain[-1][1]), int(plain[-1][2] or 0)
    else:
        passed = failed = skipped = 0
    if status != 0 and failed == 0:
        failed = 1  # it died without saying so
    if status == 0 and passed + failed + skipped == 0:
        failed = 1  # it ran nothing
    word = "FAIL" if failed else "ok  "
    names = re.findall(r"^FAIL (test_\w+)$", text, re.M)
    if failed and failed == len(names) and os.path.basename(command[-1]).startswith(RACES) and not second:
        counts.again.append(([*command, *names], name + ", at the second go", env, limit))
        say("\n".join([f"       {name}: later once more: {', '.join(names)}", *("      " + l for l in text.splitlines()[-40:])]))
        failed, word = 0, "later"
    counts.add(name, passed, failed, skipped)
    say(f"  {word} {name}: {passed} passed, {failed} failed"
        + (f", {skipped} skipped" if skipped else "") + f"  ({time.monotonic() - begin:.1f} s)")
    if failed:
        lines = text.splitlines()
        wanted = [l for l in lines if re.search(r"FAIL|Failure|error|ERROR|SUMMARY|expected|Expected|Actual|Which", l)]
        say("\n".join("      " + l for l in (wanted[:40] + ["..."] + lines[-40:])))
    for line in re.findall(r"^(?:skipped|SKIPPED): .*$", text, re.M)[:20]:
        say("      " + line)


SANITIZED = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1:detect_odr_violation=0",
             "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"},
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}


def tests_of(name, what, folder):
    """What to run of a build: commands, with what to call them and their environment."""
    env = {**SANITIZED.get(name, {}), "FEIGN_BUILD": folder}
    tests = os.path.join(folder, "tests")
    scripts = sorted(s for s in os.listdir(os.path.join(TOP, "tests"))
                     if s.endswith("_test.py") and (name == "gcc" or s not in ONCE))
    chosen = {"all": [[s] for s in sorted(scripts, key=lambda s: not s.startswith(LONG))],
              "threads": [["replay_test.py", *THREADED]]}[what]
    paths = [os.path.join(tests, p) for p in sorted(os.listdir(tests)) if p.endswith("_test")]
    return ([([path, "--gtest_brief=1"], f"{name}: {os.path.basename(path)}", env) for path in paths if os.access(path, os.X_OK)]
            + [([sys.executable, os.path.join(TOP, "tests", script), *names], f"{name}: {script}", env)
               for script, *names in chosen])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one build with gcc, without sanitizers")
    parser.add_argument("--only", help="one build: " + ", ".join(BUILDS))
    options = parser.parse_args()
    steps = [s for s in STEPS if (not options.quick or s[0] == "gcc") and (not options.only or s[0] == options.only)]
    counts = Counts()
    begin = time.monotonic()
    todo = []
    for name, what in steps:
        say(f"{name}: building")
        folder, log = build(name)
        counts.add(f"{name}: build", int(folder is not None), int(folder is None))
        if folder is None:
            with open(log, encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
            say("\n".join("      " + l for l in lines if re.search(r"error|warning|FAILED|ERROR", l)) or "\n".join(lines[-30:]))
        else:
            todo += tests_of(name, what, folder)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # most wait for what they started
        for done in [pool.submit(run, command, counts, label, env) for command, label, env in todo]:
            done.result()
    for command, name, env, limit in counts.again:
        run(command, counts, name, env, limit, second=True)
    say(f"{time.monotonic() - begin:.0f} s, {counts.skipped} skipped"
        + (": failed: " + ", ".join(counts.bad) if counts.bad else ""))
    say(f"{counts.passed} passed, {counts.failed} failed")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
