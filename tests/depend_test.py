#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs whose threads and processes work hand in hand: traced, and replayed side by side with random pauses.
With dependencies every replay comes back as recorded; without, they fall."""
import os
import shutil
import subprocess

from harness import TOP, Skip, Tmp, bounded, feign, main, refuses, same_tree, tree

SHIPPED = os.path.join(TOP, "examples", "git-clone.strace.gz")
REPEATS = 4


def traced(tmp, what, options=("-f", "-ttt", "-T", "-y")):
    strace, compiler = shutil.which("strace"), shutil.which("cc") or shutil.which("gcc")
    if not strace or not compiler:
        raise Skip("there is no strace, or no C compiler")
    program, work, trace = (os.path.join(tmp, n) for n in ("side-by-side", "w", "t.strace"))
    os.mkdir(work)
    subprocess.run([compiler, "-O1", "-w", "-pthread", "-o", program, os.path.join(TOP, "tests", "side_by_side.c")], check=True)
    subprocess.run([strace, *options, "-o", trace, program, what], check=True, cwd=work)
    return work, trace


def replay(tmp, trace, work, *options):
    root = os.path.join(tmp, "root")
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    r = feign("replay", trace, "--root", root, "--cwd", work, "--json", *options).json()
    assert not r["interrupted"]
    return r, tree(root + work)


def shaken(tmp, trace, work, order):
    """How many calls came back otherwise, and how often the tree was another one, over several replays."""
    mismatched, trees = 0, 0
    for seed in range(REPEATS):
        r, left = replay(tmp, trace, work, "--order", order, "--pace", "think", "--with", f"jitter,max=300us,seed={seed}")
        mismatched += r["mismatched"]
        trees += left != tree(work)
    return mismatched, trees


def keeps_right(what, options=("-f", "-ttt", "-T", "-y"), falls=True):
    with Tmp() as tmp:
        work, trace = traced(tmp, what, options)
        assert shaken(tmp, trace, work, "depend") == (0, 0)
        if falls:
            assert shaken(tmp, trace, work, "stream") != (0, 0), "nothing had to be in order: what does this test show?"


def test_by_pipe():
    keeps_right("pipe")


def test_by_pipe_without_annotations():
    keeps_right("pipe", ("-f", "-ttt", "-T"), falls=False)


def test_by_turns():
    keeps_right("turns")


def test_by_locks():
    keeps_right("locks")


def test_one_offset():
    keeps_right("offset")


def test_by_talk():
    keeps_right("talk")


def test_what_is_apart_stays_apart():
    with Tmp() as tmp:
        work, trace = traced(tmp, "apart")
        assert shaken(tmp, trace, work, "depend") == (0, 0)
        info = feign("info", trace, "--dependencies", "--json").json()
        d, calls = info["dependencies"], info["activities"]
        # Four threads of 200 calls each: the chain is one thread's, and what the program does alone.
        assert d["longest_chain"] < calls - 2.5 * 200, (d, calls)
        assert d["widest"] >= 4, d
        total = feign("info", trace, "--dependencies", "--json", "--with", "depend,rules=trace").json()
        assert total["dependencies"]["longest_chain"] == calls and total["dependencies"]["widest"] == 1


def test_order_depend_is_the_modifier_and_a_converted_trace_has_it():
    with Tmp() as tmp:
        native = os.path.join(tmp, "t.feign")
        assert feign("convert", SHIPPED, native, "--with", "depend").status == 0
        for args in ((SHIPPED, "--order", "depend"), (SHIPPED, "--with", "depend,rules=trace", "--order", "depend"), (native, "--order", "stream")):
            root = os.path.join(tmp, "root")
            shutil.rmtree(root, ignore_errors=True)
            os.mkdir(root)
            r = feign("replay", *args, "--root", root, "--json").json()
            assert r["mismatched"] == 0 and len(r["streams"]) > 5, (args, r["mismatches"])
        # The native trace's own: found again, and all of them kept.
        of_text = feign("info", SHIPPED, "--dependencies", "--json").json()["dependencies"]
        of_native = feign("info", native, "--dependencies", "--json", "--with", "depend,rules=recorded").json()["dependencies"]
        kept = {rule: n["kept"] for rule, n in of_text["rules"].items() if n["kept"]}
        assert kept == {rule: n["kept"] for rule, n in of_native["rules"].items()} and kept, (of_text, of_native)
        assert of_text["longest_chain"] == of_native["longest_chain"]


def test_what_many_ended_processes_did_comes_before_what_follows():
    # More of them than are remembered by name, each waited for; another process lists what they moved.
    lines = []

    def call(process, text):
        lines.append(f"{process} {1000 + len(lines) / 1000:.6f} {text} <0.000010>\n")

    call(10, 'mkdir("/w", 0777) = 0')
    call(10, 'mkdir("/q", 0777) = 0')
    for i in range(100):
        call(10, f'openat(AT_FDCWD, "/q/{i}", O_WRONLY|O_CREAT, 0666) = 3')
        call(10, "close(3) = 0")
    call(10, "clone(child_stack=NULL, flags=SIGCHLD) = 20")
    child = 100
    for i in range(100):
        for source, target, entries in ((f"/q/{i}", f"/w/{i}", 3), (f"/w/{i}", f"/q/{i}", 2)):
            child += 1
            call(10, f"clone(child_stack=NULL, flags=SIGCHLD) = {child}")
            call(child, f'rename("{source}", "{target}") = 0')
            call(child, "exit_group(0) = ?")
            call(10, f"wait4(-1, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = {child}")
            call(20, 'openat(AT_FDCWD, "/w", O_RDONLY|O_DIRECTORY) = 3')
            call(20, f"getdents64(3, 0x55 /* {entries} entries */, 32768) = {24 * entries}")
            call(20, "getdents64(3, 0x55 /* 0 entries */, 32768) = 0")
            call(20, "close(3) = 0")
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w") as f:
            f.writelines(lines)
        for again in range(3):
            root = os.path.join(tmp, f"root{again}")
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--order", "depend", "--json").json()
            assert r["mismatched"] == 0, r["mismatches"]


def test_a_name_by_way_of_a_link_is_the_one_that_it_leads_to():
    for link, made, used in (('symlink("/d1", "/v") = 0', 'mkdir("/d1", 0777) = 0', 'openat(AT_FDCWD, "/v/a", O_RDWR|O_CREAT, 0666) = 3'),
                             ('symlink("../d1/e", "/d/v") = 0', 'mkdir("/d1/e", 0777) = 0', 'mkdir("/d/v/a", 0777) = 0'),
                             ('symlink("d1", "/d/v") = 0', 'openat(AT_FDCWD, "/d/v", O_RDWR|O_CREAT, 0666) = 3', 'unlink("/d/d1") = 0'),
                             ('readlink("/v", "/d1", 9) = 3', 'rmdir("/d1/e") = 0', 'mkdir("/v/e", 0777) = 0')):
        with Tmp() as tmp:
            trace = os.path.join(tmp, "t.strace")
            with open(trace, "w") as f:
                f.write("".join(f"{who} {1000 + i / 1000:.6f} {call} <0.000010>\n" for i, (who, call) in enumerate(
                    ((1, link), (1, "clone(child_stack=NULL, flags=SIGCHLD) = 2"), (2, made), (1, used)))))
            d = feign("info", trace, "--dependencies", "--json", "--with", "depend").json()["dependencies"]
            assert d["longest_chain"] == 4, (link, d)


def test_links_that_lead_in_a_circle_end():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write('symlink("l' + "/x" * 1900 + '", "/l") = 0\n')
            f.writelines(f'openat(AT_FDCWD, "/l/{i}", O_RDONLY) = -1 ELOOP (Too many levels of symbolic links)\n' for i in range(60))
        r, _ = replay(tmp, trace, "/", "--order", "depend", "--replayer", "null")  # minutes, where names grow with each link
        assert r["activities"] == 61


def test_explicit_edges():
    with Tmp() as tmp:
        edges = os.path.join(tmp, "edges")
        with open(edges, "w") as f:
            f.write("# one\n40 after 3\n")
        d = feign("info", SHIPPED, "--dependencies", "--json", "--with", f"depend,rules=none,edges={edges}").json()["dependencies"]
        assert set(d["rules"]) <= {"explicit"}, d
        with open(edges, "w") as f:
            f.write("# one\n40 after 41\n")
        refuses("info", SHIPPED, "--dependencies", "--with", f"depend,edges={edges}",
                text=r"edges:2: activity 40 after activity 41, which does not come before it")
        refuses("replay", SHIPPED, "--root", tmp, "--with", "depend,rules=handel", text='no rule "handel": want handle, path')


def test_waits_are_not_made_not_counted_as_replayed_and_not_waited_twice():
    at = "17000000%02d.%06d"
    lines = [f"1 {at % (1, 0)} pipe([3, 4]) = 0 <0.000010>", f"1 {at % (1, 100)} fork() = 2 <0.000010>",
             f"2 {at % (1, 200)} read(3, <unfinished ...>", f"1 {at % (2, 500000)} write(4, \"x\", 1) = 1 <0.000010>",
             f"2 {at % (2, 500050)} <... read resumed>\"x\", 1) = 1 <1.499850>", f"1 {at % (2, 500200)} wait4(-1, <unfinished ...>",
             f"2 {at % (2, 600000)} exit_group(0) = ?", f"1 {at % (2, 700000)} <... wait4 resumed>NULL, 0, NULL) = 2 <0.199800>",
             f"1 {at % (2, 700100)} exit_group(0) = ?"]
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w") as f:
            f.write("\n".join(lines) + "\n")
        for options in ((), ("--with", "depend,rules=none")):
            root = os.path.join(tmp, "root")
            shutil.rmtree(root, ignore_errors=True)
            os.mkdir(root)
            r = feign("replay", trace, "--root", root, "--order", "depend", "--pace", "think", "--json", *options).json()
            skips = {s["op"]: s["why"] for s in r["skips"]}
            assert skips["wait4"] == "waits for others: its order is kept", r["skips"]
            assert r["ops"]["wait4"]["replayed"] == 0
            paused = {s["stream"]: s["pause_seconds"] for s in r["streams"]}
            # The child's read: waited for its parent's write, or slept as long as it took then; its parent
            # computes for as long.
            assert paused[1] > 1.4 and (paused[2] > 1.4 if options else paused[2] < 0.5), r["streams"]


def test_a_context_of_requests_is_not_destroyed_before_another_thread_has_what_it_waits_for():
    """Nothing but the context orders the two: one has its requests late, the other, whose fsync took long then, destroys it at once."""
    lines = ["7 1700000100.000000 io_setup(8, [0x7f00]) = 0 <0.000001>", '7 1700000100.000100 openat(AT_FDCWD, "/a", O_RDWR|O_CREAT, 0600) = 4 <0.000001>',
             "7 1700000100.000200 clone(child_stack=0x7f1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM) = 8 <0.000001>",
             '7 1700000100.000300 io_submit(0x7f00, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=4, aio_buf="", aio_nbytes=512, aio_offset=0}]) = 1 <0.000001>',
             "7 1700000100.000400 fsync(4 <unfinished ...>",
             "8 1700000100.500000 io_getevents(0x7f00, 1, 1, [{data=0, obj=0x1, res=512, res2=0}], NULL) = 1 <0.000001>",
             "7 1700000100.500200 <... fsync resumed>) = 0 <0.499800>", "7 1700000100.500300 io_destroy(0x7f00) = 0 <0.000001>", "7 1700000100.500400 close(4) = 0 <0.000001>"]
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        r, _ = replay(tmp, trace, "/", "--order", "depend", "--pace", "think", "--with", "depend,rules=handle")
        assert r["mismatches"] == [] and r["ops"]["io_getevents"]["emulated"] == 0, (r["mismatches"], r["skips"])


def test_memory_does_not_grow_with_the_tags_of_messages():
    with Tmp() as tmp:
        traces = [os.path.join(tmp, f"x_h_{rank}_0.trc") for rank in (0, 1)]

        def write(count):
            for path, call in zip(traces, ("Send size='4' toRank='1' toTag", "Recv size='4' fromRank='0' fromTag")):
                with open(path, "w", encoding="ascii") as f:
                    f.write("<Program>\n")
                    for i in range(count):  # one for each
                        f.write(f"<{call}='{i}' cid='0' count='1' tid='0' time='{i}.1' end='{i}.2'/>\n")
                    f.write("</Program>\n")
        bounded(write, "convert", "-q", *traces, "--with", "depend", os.path.join(tmp, "out.feign"), counts=(5000, 100000))


main(globals())
