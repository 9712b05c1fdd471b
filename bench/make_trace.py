#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what strace -ttt -T would print of a program that alternates 4 KiB pwrite64 and pread64 at
random offsets of one file.

usage: make_trace.py CALLS FILE [MEBIBYTES]
"""
import random
import sys


def main():
    calls, name = int(sys.argv[1]), sys.argv[2]
    blocks = int(sys.argv[3] if len(sys.argv) > 3 else 64) * 256
    rng = random.Random(1)
    t = 1795229220.0
    with open(name, "w", encoding="ascii") as out:
        def line(text, took=0.000001):
            nonlocal t
            out.write(f"{t:.6f} {text} <{took:.6f}>\n")
            t += took + 0.000001
        line('execve("/usr/bin/io4k", ["io4k"], 0x7ffca8e2e4b8 /* 7 vars */) = 0', 0.0002)
        line('openat(AT_FDCWD, "/data/io4k.dat", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3', 0.00002)
        line(f"ftruncate(3, {blocks * 4096}) = 0", 0.00001)
        for i in range(calls):
            offset = rng.randrange(blocks) * 4096
            call = "pread64" if i & 1 else "pwrite64"
            line(f'{call}(3, "\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0"..., 4096, {offset}) = 4096')
        line("close(3) = 0")
        line("exit_group(0) = ?")


main()
