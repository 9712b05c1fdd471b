#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Layer stdio: random programs of its calls, done for real, replayed, and the trees compared."""
import os

from harness import BUILD, Tmp, feign, main, same_tree, tree

PROGRAM = os.path.join(BUILD, "tests", "plugins", "stdio-program.so")


def replays(seeds, *options):
    for seed in seeds:
        with Tmp() as tmp:
            work, root = os.path.join(tmp, "w"), os.path.join(tmp, "root")
            os.mkdir(work)
            os.mkdir(root)
            trace = os.path.join(tmp, "t.feign")
            done = feign("--plugin", f"{PROGRAM},dir={work},seed={seed}", "--plugin", f"feign,file={trace}")
            assert done.status == 0, done.err
            for _ in range(2):  # the second time on a used root
                r = feign("replay", trace, "--root", root, "--json", *options).json()
                assert r["mismatched"] == 0 and r["activities"] > 200, (seed, r["mismatches"])
                same_tree(tree(work), tree(os.path.join(root, work[1:])))


def test_random_programs():
    replays(range(1, 1 + int(os.environ.get("FEIGN_SEEDS", "12"))))


def test_what_is_written_is_read_again():
    replays(range(100, 104), "--replayer", "posix,verify=yes")


if __name__ == "__main__":
    main(globals())
