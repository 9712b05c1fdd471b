#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A short run of each fuzz target; tests/fuzz/run NAME 600 is a long one."""
import os
import shutil
import subprocess
import sys

from harness import BUILD, TOP, Skip, Tmp, main

OBJECTS = Tmp()


def fuzzes(target):
    if os.path.basename(BUILD) not in ("build", "build-gcc"):
        raise Skip("done once, with the first build")
    clang = shutil.which("clang++")
    if not clang:
        raise Skip("there is no clang")
    with Tmp() as tmp:
        probe = os.path.join(tmp, "p.cc")
        with open(probe, "w", encoding="ascii") as f:
            f.write("extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }\n")
        if subprocess.run([clang, "-fsanitize=fuzzer,address", "-o", os.path.join(tmp, "p"), probe], stderr=subprocess.DEVNULL).returncode:
            raise Skip("clang has no libFuzzer: apt-get install libclang-rt-14-dev")
    done = subprocess.run([sys.executable, os.path.join(TOP, "tests", "fuzz", "run"), target, os.environ.get("FEIGN_FUZZ_SECONDS", "15"), BUILD],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, "FEIGN_FUZZ_OBJECTS": OBJECTS.name})
    assert done.returncode == 0, done.stdout[-4000:]


def test_native():
    fuzzes("native")


def test_strace():
    fuzzes("strace")


def test_hdtrace():
    fuzzes("hdtrace")


def test_tracetext():
    fuzzes("tracetext")


def test_siox():
    fuzzes("siox")


if __name__ == "__main__":
    main(globals())
