#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign info: how files are read and written, told of traces whose answer is known."""
import os
import random
import re

from harness import TOP, Tmp, feign, main


def told(lines):
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as f:
            f.writelines(f"7 17000000{10 + i // 1000:02}.{i % 1000 * 1000:06} {line} <0.000500>\n" for i, line in enumerate(lines))
        assert "where the last one ended" in feign("info", trace).out
        return feign("info", trace, "--json").json()



def test_a_copy_is_read_from_one_file_and_written_to_the_other():
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.strace")
        with open(path, "w", encoding="ascii") as f:
            f.write('1 1.0 open("/a", O_RDONLY) = 3\n1 1.1 open("/b", O_WRONLY|O_CREAT, 0666) = 4\n1 1.2 copy_file_range(3, NULL, 4, NULL, 9000, 0) = 5000\n'
                    '1 1.3 sendfile(4, 3, NULL, 100) = 100\n1 1.4 sendfile(9<socket:[7]>, 3, NULL, 10) = 10\n')
        files = {f["path"]: (f["bytes_read"], f["bytes_written"]) for f in feign("info", path, "--json").json()["files"]}
        assert files == {"/a": (5110, 0), "/b": (0, 5100)}, files


def test_what_was_taken_for_granted_stays_with_a_converted_trace():
    with Tmp() as tmp:
        first, second, third = os.path.join(tmp, "t.strace"), os.path.join(tmp, "t.feign"), os.path.join(tmp, "u.feign")
        with open(first, "w", encoding="ascii") as f:
            f.write('1 1700001000.1 open("a", O_RDWR|O_CREAT, 0644) = 3 <0.1>\n1 1700000900.2 close(3) = 0 <0.1>\n')
        told = [{"cwd": "--cwd DIR says which" in note, "clock": "the clock was set back" in note} for note in feign("info", first, "--json").json()["notes"]]
        assert told == [{"cwd": True, "clock": False}], told
        r = feign("convert", first, second)
        assert r.status == 0 and "feign: note: strace: the trace does not tell the directory" in r.err and r.err.count("set back") == 1, r.err
        r = feign("convert", second, third)
        assert r.status == 0 and r.err.count("note: strace: ") == 2, r.err
        for trace in (second, third):
            notes = feign("info", trace, "--json").json()["notes"]
            assert len(notes) == 2 and "the clock was set back" in notes[0] and "--cwd DIR says which" in notes[1], notes
            for order in ((), ("--with", "rebase,from=/a,to=/b")):  # as it is, and through a pipeline
                root = os.path.join(tmp, "root")
                os.makedirs(root, exist_ok=True)
                assert feign("replay", trace, "--root", root, "--json", *order).json()["notes"] == notes


def test_columns_stay_below_their_heads():
    with Tmp() as tmp:
        mpi, strace = os.path.join(tmp, "t_h_0_0.trc"), os.path.join(tmp, "t.strace")
        with open(mpi, "w", encoding="ascii") as f:
            f.write("<Program>\n<Barrier cid='0' time='1.0' end='1.1'/>\n<Reduce_scatter cid='0' time='2.0' end='2.1'/>\n</Program>\n")
        with open(strace, "w", encoding="ascii") as f:
            f.write('7 1.1 sched_get_priority_max(SCHED_RR) = 99 <0.1>\n7 1.3 getpid() = 7 <0.1>\n7 1.5 open("/a", O_RDONLY) = 3 <0.1>\n')
        for trace, head, names in (mpi, "op", ("mpi:MPI_Barrier", "mpi:MPI_Reduce_scatter")), (strace, "call", ("sched_get_priority_max", "getpid")):
            lines = feign("info", trace).out.splitlines()
            rows = [line for line in lines if line.split()[:1] and line.split()[0] in (head, *names)]
            assert len({line.index(line.split()[1]) + len(line.split()[1]) for line in rows}) == 1 and len(rows) == 3, rows


def test_how_files_are_read_and_written():
    opens = ['openat(AT_FDCWD, "/a", O_RDONLY) = 3', 'openat(AT_FDCWD, "/b", O_RDWR) = 4']
    in_a_row = ['read(3, "", 4096) = 4096'] * 50
    strides = [f'pread64(4, "", 1024, {i * 100000}) = 1024' for i in range(21)]
    anywhere = random.Random(1).sample(range(1000), 30)
    writes = [f'pwrite64(4, "", 8, {n * n * 10}) = 8' for n in anywhere]
    info = told(opens + in_a_row + strides + writes + ['write(1, "", 5) = 5', 'read(3, "", 4096) = 0'])
    # The first of each file is none of these, nor is the first step of a stride.
    assert info["reads"] == {"count": 71, "size_p50": 4096, "size_p90": 4096, "size_max": 4096, "sequential": 49, "strided": 19, "elsewhere": 1}, info["reads"]
    assert info["writes"] == {"count": 30, "size_p50": 8, "size_p90": 8, "size_max": 8, "sequential": 0, "strided": 0, "elsewhere": 29}, info["writes"]
    assert 0.48 < info["in_calls_at_once"] < 0.52, info["in_calls_at_once"]


def test_another_opening_begins_anew():
    again = ['openat(AT_FDCWD, "/a", O_RDONLY) = 3', 'read(3, "", 100) = 100', "close(3) = 0"]
    info = told(again * 5)
    assert info["reads"]["count"] == 5 and info["reads"]["sequential"] == info["reads"]["elsewhere"] == 0, info["reads"]


def test_who_reads_a_trace():
    """Its name says whom to ask first; its content decides. Others are not loaded for it."""
    with Tmp() as tmp:
        def loaded(name):
            done = feign("info", os.path.join(tmp, name), env={"LD_DEBUG": "files"})
            assert done.status == 0 and "openat" in done.out, done.err
            return {plugin for plugin in ("strace", "feign", "hdtrace", "jitter") if f"/{plugin}.so" in done.err}

        text, native = os.path.join(tmp, "t.strace"), os.path.join(tmp, "t.feign")
        with open(text, "w", encoding="ascii") as f:
            f.write('7 1700000010.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000500>\n')
        assert feign("convert", text, native).status == 0
        os.symlink("t.strace", os.path.join(tmp, "t.txt"))
        os.symlink("t.feign", os.path.join(tmp, "misnamed.strace"))
        assert loaded("t.strace") == {"strace"} and loaded("t.feign") == {"feign"}
        assert loaded("t.txt") == loaded("misnamed.strace") == {"strace", "feign", "hdtrace"}


def test_what_becomes_of_each_call_in_a_replay():
    """The report of a replay says the same."""
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        with open(trace, "w", encoding="ascii") as f:
            f.write('1 mkdir("/d", 0755) = 0\n1 chdir("/d") = 0\n1 open("f", O_RDWR|O_CREAT, 0644) = 3\n1 io_setup(1, [0x7f0000000000]) = 0\n1 vfork() = 2\n2 exit_group(0) = ?\n'
                    "1 clone(child_stack=NULL, flags=SIGCHLD) = 3\n3 exit_group(0) = ?\n1 clone3({flags=0, exit_signal=SIGCHLD}, 88) = 4\n4 exit_group(0) = ?\n"
                    "1 wait4(2, NULL, 0, NULL) = 2\n1 close(3) = 0\n")
        os.mkdir(root)
        said = {name: op["in_a_replay"] for name, op in feign("info", trace, "--json").json()["ops"].items()}
        done = feign("replay", trace, "--root", root, "--json").json()["ops"]
        found = {name: "order kept" if op["skipped"] else "kept account of" if op["emulated"] else "made" for name, op in done.items()}
        assert said == found and {"made", "order kept", "kept account of"} == set(said.values()), (said, found)
        assert any(line.split()[0] == "wait4" and line.endswith("  order kept") for line in feign("info", trace).out.splitlines() if line.strip())


def test_many_sizes():
    info = told(['openat(AT_FDCWD, "/a", O_RDONLY) = 3'] + [f'read(3, "", {n}) = {n}' for n in range(1, 9001)])
    assert info["reads"]["count"] == 9000 and info["reads"]["size_p50"] == 4096 and info["reads"]["size_max"] == 9000, info["reads"]


def test_one_of_a_thing_is_said_as_one():
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(trace, "w", encoding="ascii") as f:
            f.write('1 1.0 open("/d/a", O_RDONLY) = 3\n1 1.1 read(3, "x", 1) = 1\n')
        assert " in 1 stream over " in feign("info", trace).out
        said = feign("replay", trace, "--root", root).out
        assert "1 file (1 B, " in said and "), 1 directory, 0 links" in said, said
        said = feign("discover", "-o", os.path.join(tmp, "d"), "--nodes", "none", "--", "sh", "-c", f"echo a > {tmp}/out").out
        assert "\n1 run in " in said, said


def test_every_key_of_json_is_described():
    with open(os.path.join(TOP, "docs/report.md"), encoding="utf-8") as f:
        pages = dict(page.split("\n", 1) for page in ("replay --json\n" + f.read()).replace("## feign ", "\n## ").split("\n## "))
    with Tmp() as tmp:
        trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
        os.mkdir(root)
        with open(trace, "w", encoding="ascii") as f:
            f.write('1 1.0 open("/d/a", O_RDONLY) = 3\n1 1.1 read(3, "x", 1) = 1\n1 1.2 read(4, "x", 1) = 1\n1 1.3 foo() = 1\n')
        for command, args in (("replay", (trace, "--root", root)), ("info", (trace, "--dependencies")), ("inspect", ("jitter",)),
                              ("discover", ("-o", os.path.join(tmp, "d"), "--", "sh", "-c", f"echo a > {tmp}/out; (echo b > {tmp}/b) & wait"))):
            made, rows = feign(command, "--json", *args).json(), re.findall(r"^\| (.*)\|$", pages[command + " --json"], re.M)
            words = set(re.findall(r"[a-z0-9_]+", " ".join(rows)))
            objects = [made] if isinstance(made, dict) else made
            for one in list(objects):
                objects += [row for rows in one.values() if isinstance(rows, list) for row in rows if isinstance(row, dict)]
            missing = {key for one in objects for key in one} - words
            assert not missing and len(objects) > 2, (command, missing)


if __name__ == "__main__":
    main(globals())
