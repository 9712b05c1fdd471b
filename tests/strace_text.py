# SPDX-License-Identifier: MIT
"""What the tests of provider strace share: its text becomes activities, and a replay."""
import os
import re

from harness import Tmp, feign


def text_of(trace, *options, name="t.strace"):
    """The activities of a trace, as lines of the writer text without number and time, and what was said."""
    with Tmp() as tmp:
        path = os.path.join(tmp, name)
        if isinstance(trace, dict):
            for file, lines in trace.items():
                with open(os.path.join(tmp, file), "w", encoding="utf-8") as f:
                    f.write("\n".join(lines) + "\n")
            path = os.path.join(tmp, name)
        else:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write("\n".join(trace) + "\n")
        out = os.path.join(tmp, "out.txt")
        r = feign("convert", path, out, *options)
        assert r.status == 0, r.err
        with open(out, encoding="utf-8", errors="surrogateescape") as f:
            return [re.sub(r"^\d+ [\d.]+ ", "", line.rstrip("\n")) for line in f], r


def calls(trace, *options, **how):
    """Only the calls: name, arguments and result."""
    return [re.sub(r"^\[.*?\] (.*) <\d+\.\d+>.*$", r"\1", line) for line in text_of(trace, *options, **how)[0]]


def same(got, want):
    assert got == want, "\n".join(["got"] + got + ["want"] + want)


def notes_of(trace, *options):
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(trace) + "\n")
        return "\n".join(feign("info", path, *options, "--json").json()["notes"])


OPEN = 'openat(AT_FDCWD, "/f", O_RDONLY) = 3'
THREAD = "clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 10"
OVER = "+++ exited with 0 +++"
SEEN = 'openat(pathname="/f", flags=O_RDONLY, mode=00) = 3'
NUMBERS = {"AT_FDCWD": "-100", "SEEK_SET": "0", "SEEK_CUR": "0x1", "SEEK_END": "0x2", "LOCK_EX": "0x2", "LOCK_NB": "0x4", "LOCK_SH": "0x1", "LOCK_UN": "0x8",
           "F_SETLK": "0x6", "F_SETLKW": "0x7", "F_OFD_SETLK": "0x25", "F_RDLCK": "0", "F_WRLCK": "0x1", "F_UNLCK": "0x2", "O_RDONLY": "0", "O_WRONLY": "0x1", "O_RDWR": "0x2",
           "O_CREAT": "0x40", "O_EXCL": "0x80", "O_TRUNC": "0x200", "O_APPEND": "0x400", "O_DIRECTORY": "0x10000"}


def raw(line):
    """As strace -X raw prints it."""
    flags = "|".join(NUMBERS)
    return re.sub(rf"\b(?:{flags})(?:\|(?:{flags}))*\b", lambda m: hex(sum({int(NUMBERS[n], 16) if n != "AT_FDCWD" else -100 for n in m[0].split("|")}))
                  if m[0] != "AT_FDCWD" else "-100", line)


def order_of(tmp, lines):
    """Processes and results of the calls, in the order in which they count: the same with names of flags and with numbers."""
    path, out = os.path.join(tmp, "t.strace"), os.path.join(tmp, "t.txt")
    found = []
    for form in (str, raw):
        with open(path, "w", encoding="utf-8") as f:
            for i, line in enumerate(lines):
                pid, call = line.split(" ", 1)
                f.write(f"{pid} 1700000000.{i:06d} {form(call)}\n")
        assert feign("convert", "-q", path, out).status == 0
        with open(out, encoding="utf-8") as f:
            found.append([(int(m[1]), m[2]) for m in re.finditer(r"/(\d+)\] .*\) = (\S+)", f.read())])
    assert found[0] == found[1], found
    return found[0]


def replayed(lines, *options):
    """The report of a replay of these lines, and the tree that it left: {path: content size or None}."""
    with Tmp() as tmp:
        path, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
        r = feign("replay", path, "--root", root, "--json", *options)
        assert r.status == 0, r.err
        sizes = {}
        for folder, folders, files in os.walk(root):
            for name in folders:
                sizes[os.path.join(folder, name)[len(root):]] = None
            for name in set(files) - {".feign"}:
                sizes[os.path.join(folder, name)[len(root):]] = os.lstat(os.path.join(folder, name)).st_size
        return r.json(), sizes
