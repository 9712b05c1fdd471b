#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What modifiers prefetch and hints do to a trace, as a user sees it; hints in a real replay, under strace; the oracle of docs/what-if.md."""
import os
import re
import shutil
import subprocess

from harness import FEIGN, TOP, Skip, Tmp, feign, main


def strace_text(calls):
    """(milliseconds, process, call, result) as strace writes them."""
    return "".join(f"{p} {1700000000 + ms / 1000:.6f} {call} = {result} <0.000010>\n" for ms, p, call, result in calls)


def written(tmp, calls):
    path = os.path.join(tmp, "app.strace")
    with open(path, "w", encoding="ascii") as f:
        f.write(strace_text(calls))
    return path


def opened(p=100, name="/f", fd=3, flags="O_RDWR", ms=0):
    return (ms, p, f'openat(AT_FDCWD, "{name}", {flags})', fd)


def pread(ms, offset, length=4096, p=100, fd=3, call="pread64"):
    return (ms, p, f'{call}({fd}, ""..., {length}, {offset})', length)


def changed(calls, *with_):
    """The trace after modifiers: (process, injected, call, offset, length), calls in order."""
    with Tmp() as tmp:
        trace, out = written(tmp, calls), os.path.join(tmp, "x.txt")
        r = feign("convert", trace, out, "-q", *[x for w in with_ for x in ("--with", w)])
        assert r.status == 0, r.err
        found = []
        with open(out, encoding="utf-8") as f:
            for line in f:
                if (m := re.search(r"\] (\w+)\((.*)\) = ", line)) is None:
                    continue
                numbers = {name: int(value) for name, value in re.findall(r"(offset|len|count)=(\d+)", m[2])}
                found.append(("[injected]" in line, m[1], numbers.get("offset"), numbers.get("len", numbers.get("count"))))
        return found


def asked(calls, *with_):
    """Where each injected advice stands (how many recorded calls are before it), and for what."""
    out, before = [], 0
    for injected, call, offset, length in changed(calls, *with_):
        if injected and call in ("fadvise64", "readahead"):
            out.append((before, offset, length))
        before += not injected
    return out


# ---- prefetch


def far(n, p=100, fd=3, ms=10):
    return [pread(ms * (i + 1), 1000000 * i, p=p, fd=fd) for i in range(n)]


def test_prefetch_looks_ahead_by_reads_or_by_recorded_time():
    calls = [opened()] + far(6)
    assert asked(calls, "prefetch,distance=1") == [(i, 1000000 * i, 4096) for i in range(1, 6)], asked(calls, "prefetch,distance=1")
    assert asked(calls, "prefetch,distance=2") == [(1, 1000000, 4096)] + [(i, 1000000 * (i + 1), 4096) for i in range(1, 5)], asked(calls, "prefetch,distance=2")
    # 10 ms apart: 25 ms reach two reads, 35 ms three.
    for lead, reach in (("25ms", 2), ("35ms", 3)):
        places = asked(calls, f"prefetch,distance=0,lead={lead}")
        at = {offset // 1000000: before for before, offset, _ in places}
        assert at[5] == 6 - reach, (lead, places)


def test_several_are_in_flight_within_a_budget():
    calls = [opened()] + far(9)
    def most(option):
        flying, worst, out = set(), 0, changed(calls, "prefetch,distance=8," + option)
        for injected, call, offset, _ in out:
            if injected:
                flying.add(offset)
            elif call == "pread64":
                flying.discard(offset)
            worst = max(worst, len(flying))
        return worst
    assert most("budget=1g") >= 7
    assert most("budget=12k") == 3
    assert most("in-flight=2") == 2
    assert most("budget=4095") == 0, "what can never be within it is not asked for"


def test_adjacent_ones_are_one_call_and_strided_ones_are_not():
    calls = [opened()] + [pread(10 * i + 10, 4096 * i) for i in range(16)]
    together = asked(calls, "prefetch,distance=8")
    assert together[0] == (1, 4096, 8 * 4096) and sum(n for _, _, n in together) == 15 * 4096 and len(together) == 3, together
    assert len(asked([opened()] + far(8), "prefetch,distance=8")) == 7


def test_nothing_is_asked_for_that_the_trace_just_read_or_wrote():
    calls = [opened(), pread(1, 0, 8192, call="pwrite64"), pread(2, 500000, 4096), pread(3, 4096), pread(4, 500000), pread(5, 900000)]
    wanted = {offset for _, offset, _ in asked(calls, "prefetch,distance=1")}
    assert 4096 not in wanted and 900000 in wanted, wanted
    assert len([o for _, o, _ in asked(calls, "prefetch,distance=1") if o == 500000]) <= 1
    # What was dropped from memory is asked for again, and so is all with fresh=0.
    dropped = calls[:2] + [(1, 100, "fadvise64(3, 0, 0, POSIX_FADV_DONTNEED)", 0)] + calls[2:]
    assert 4096 in {offset for _, offset, _ in asked(dropped, "prefetch,distance=1")}
    assert 4096 in {offset for _, offset, _ in asked(calls, "prefetch,distance=1,fresh=0")}


def test_each_stream_by_itself():
    one, other = [opened(ms=0)] + far(4), [opened(p=200, name="/g", ms=1)] + [pread(ms + 1, 77 + 1000000 * i, p=200) for i, (ms, *_) in enumerate(far(4))]
    mixed = sorted(one + other)
    both = asked(mixed, "prefetch,distance=1")
    alone = asked(sorted(one), "prefetch,distance=1")
    assert [o for _, o, _ in both if o % 1000000 == 0] == [o for _, o, _ in alone] and len(both) == 2 * len(alone), (both, alone)


# ---- hints


def test_hints_by_path_size_and_pattern():
    calls = [opened(name="/a/big.h5", fd=3), opened(name="/a/small", fd=4)] + [pread(i + 1, 8192 * i, 8192) for i in range(8)]
    calls += [pread(20 + i, (i * 7 % 5) * 900, 100, fd=4) for i in range(8)] + [(40, 100, "close(3)", 0), (41, 100, "close(4)", 0)]
    calls = sorted(calls, key=lambda c: c[0])
    place = lambda *w: [i for i, c in enumerate(changed(calls, *w)) if c[0]]  # noqa: E731
    assert place("hints,advice=sequential,path=/a/*.h5") == [1]
    assert place("hints,advice=random,pattern=random") == [2]
    assert place("hints,advice=sequential,pattern=sequential") == [1]
    assert place("hints,advice=noreuse,min-size=32k") == [1]
    assert place("hints,advice=noreuse,max-size=32k") == [2]
    assert place("hints,advice=noreuse,min-size=32k,window=2") == [3], "when it is seen to be so long"
    assert place("hints,advice=dontneed,path=**/small") == [len(calls) - 1]
    assert place("hints,advice=random,pattern=random", "hints,advice=sequential,pattern=sequential") == [1, 3]


def made(tmp, calls, *with_):
    """The replayer's own system calls, with raw arguments, in order."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    root, log = os.path.join(tmp, "root"), os.path.join(tmp, "log")
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    names = "openat,openat2,pread64,read,write,pwrite64,lseek,fallocate,fadvise64,fsync,fdatasync,pwritev"
    p = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=" + names, "-e", "raw=pread64,read,write,pwrite64", FEIGN, "replay", written(tmp, calls), "--root", root,
                        "-q", *[x for w in with_ for x in ("--with", w)]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, text=True)
    if not os.path.exists(log) or "ptrace" in p.stderr:
        raise Skip("strace does not work here")
    assert p.returncode == 0, p.stderr
    with open(log, encoding="utf-8", errors="replace") as f:
        return f.read()


def test_hints_in_a_real_replay():
    calls = [opened(flags="O_RDWR|O_CREAT|O_TRUNC|O_SYNC, 0644"), pread(1, 0, 777, call="pwrite64"), (2, 100, "fsync(3)", 0), pread(3, 33, 444), (4, 100, "close(3)", 0)]
    with Tmp() as tmp:
        plain = made(tmp, calls)
        where = lambda log, call: [int(x, 16) % 4096 for x in re.findall(call + r"\(0x[0-9a-f]+, (0x[0-9a-f]+), 0x(?:309|1bc)\b", log)]  # noqa: E731
        assert where(plain, "pwrite64") == [0] and where(plain, "pread64") == [0], plain[-3000:]
        assert re.search(r"O_SYNC", plain) and re.search(r"\bfsync\(", plain)
        for buffer in (1, 512, 4096):
            log = made(tmp, calls, f"hints,buffer={buffer}")
            assert where(log, "pwrite64") == where(log, "pread64") == [buffer % 4096], (buffer, log[-3000:])
        log = made(tmp, calls, "hints,sync=remove,fsync=fdatasync,allocate=64k,advice=random,align=4k")
        assert "O_SYNC" not in log and re.search(r"\bfdatasync\(", log) and not re.search(r"\bfsync\(", log)
        assert re.search(r"fallocate\(\d+, FALLOC_FL_KEEP_SIZE, 0, 65536\) = 0", log) and re.search(r"fadvise64\(\d+, 0, 0, POSIX_FADV_RANDOM\) = 0", log)
        assert re.search(r"pread64\(0x[0-9a-f]+, 0x[0-9a-f]+, 0x1000, 0\) = 0x309", log), "from the beginning of the page to the end of the file"
        assert os.path.getsize(os.path.join(tmp, "root", "f")) == 777


# ---- an oracle of one's own


def test_the_oracle_of_the_docs_compiles_keeps_the_contract_and_foretells():
    compiler = next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), None)
    if compiler is None:
        raise Skip("there is no C++ compiler")
    with open(os.path.join(TOP, "docs", "what-if.md"), encoding="utf-8") as f:
        source = re.search(r"```cpp\n(// oracle\.cc.*?)```", f.read(), re.S)[1]
    with Tmp() as tmp:
        with open(os.path.join(tmp, "oracle.cc"), "w", encoding="utf-8") as f:
            f.write(source)
        plugin = os.path.join(tmp, "oracle.so")
        done = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "-I", os.path.join(TOP, "include"), "-o", plugin,
                               os.path.join(tmp, "oracle.cc")], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0, done.stderr
        r = feign("check", plugin)
        assert r.status == 0 and " 0 failed" in r.out, r.out + r.err
        calls = [opened()] + far(6) + [(90, 100, "close(3)", 0)]
        assert asked(calls, plugin + ",ahead=2") == [(1, 1000000, 4096)] + [(i, 1000000 * (i + 1), 4096) for i in range(1, 5)], asked(calls, plugin)


if __name__ == "__main__":
    main(globals())
