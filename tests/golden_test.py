#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden text: what a capture means after resolve, through the writer text. UPDATE_GOLDEN=1 rewrites."""
import os

from harness import TOP, Tmp, feign, main

FOLDER = os.path.join(TOP, "tests", "golden")


def golden(name, trace):
    with Tmp() as tmp:
        out, back, again = (os.path.join(tmp, n) for n in ("out.txt", "t.feign", "again.txt"))
        source = os.path.join("tests", "golden", trace)
        r = feign("convert", source, out, cwd=TOP)
        assert r.status == 0, r.err
        with open(out, encoding="utf-8") as f:
            text = f.read()
        want = os.path.join(FOLDER, name + ".txt")
        if os.environ.get("UPDATE_GOLDEN"):
            with open(want, "w", encoding="utf-8") as f:
                f.write(text)
        with open(want, encoding="utf-8") as f:
            expected = f.read()
        for number, (a, b) in enumerate(zip(expected.splitlines(), text.splitlines()), 1):
            assert a == b, f"{name}.txt:{number}\n  want {a}\n  got  {b}"
        assert len(expected) == len(text)
        # The native format keeps every word of it.
        assert feign("convert", source, back, cwd=TOP).status == 0
        assert feign("convert", back, again).status == 0
        with open(again, encoding="utf-8") as f:
            assert f.read() == text


# A trace's first file is NAME.PROVIDER or, where it has several, NAME.PROVIDER.0.
for entry in sorted(os.listdir(FOLDER)):
    trace = entry.removesuffix(".0")
    name, _, provider = trace.partition(".")
    if provider in ("strace", "tracetext"):
        globals()[f"test_{name}"] = lambda name=name, trace=trace: golden(name, trace)

if __name__ == "__main__":
    main(globals())
