#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replay by several ranks under mpirun: recorded traces, hand-made ones, what waits across ranks, what ends all."""
import functools
import glob
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import tarfile
import time

from harness import BUILD, CORPUS, FEIGN, TOP, Skip, Tmp, feign, main, refuses, sanitized, tree

HDTRACE = os.path.join(CORPUS, "hdtrace")
# Variables that a launcher of the tests themselves may have set.
# Open MPI ends with much that it never frees.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
QUIET = {k: v for k, v in os.environ.items() if not re.match(r"(OMPI|PMIX|PMI|SLURM)_", k)}


def command(ranks, *args, timeout=60):
    if shutil.which("mpirun") is None:
        raise Skip("there is no mpirun")
    if "mpi" not in feign("inspect", "--names").out.split():
        raise Skip("this feign was built without Open MPI")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["timeout", "-k", "5", str(timeout), "mpirun", *root, "--oversubscribe", "-np", str(ranks), FEIGN, *map(str, args)]


def stuck(top):
    """What each thread below that process is doing, as far as may be seen: for whoever looks for why it hangs."""
    def read(path):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                return f.read().replace("\0", " ").strip()
        except OSError:
            return "?"
    pids = [top]
    for pid in pids:
        pids += map(int, read(f"/proc/{pid}/task/{pid}/children").replace("?", "").split())
    said = []
    for pid in pids[1:]:
        said.append(f"{pid} {read(f'/proc/{pid}/cmdline')[:200]}")
        if shutil.which("gdb"):
            done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 15"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
            said += [line[:160] for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
            continue
        for task in os.listdir(f"/proc/{pid}/task") if os.path.exists(f"/proc/{pid}") else ():
            at = f"/proc/{pid}/task/{task}"
            said.append(f"    {task} in {read(at + '/wchan')}, system call {read(at + '/syscall')}, {' '.join(read(at + '/stat').split()[13:15])} ticks")
    return "\n".join(said)


class Ran:
    def __init__(self, done, hung=""):
        self.status, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace")
        assert self.status not in (124, 137), f"it hung: {self.err[-2000:]}\n{hung}"

    def json(self):
        return json.loads(self.out)


def mpirun(ranks, *args, timeout=60, env=None):
    hung = ""
    with subprocess.Popen(command(ranks, *args, timeout=timeout), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env={**QUIET, **(env or {})}) as p:
        try:
            out, err = p.communicate(timeout=timeout * 0.9)
        except subprocess.TimeoutExpired:
            hung = stuck(p.pid)
            out, err = p.communicate()
    return Ran(subprocess.CompletedProcess(p.args, p.returncode, out, err), hung)


def replayed(ranks, *args, **how):
    """The report of a replay that went as recorded."""
    r = mpirun(ranks, "replay", *args, "--json", "--require", "1", **how)
    assert r.status == 0, f"status {r.status}: {r.err[-3000:]} {r.out[-2000:]}"
    return r.json()


def corpus(name):
    path = os.path.join(HDTRACE, name)
    if not os.path.exists(path):
        raise Skip(f"there is no {path}")
    return path


def unpacked(tmp, name):
    with tarfile.open(corpus(name)) as tar:
        tar.extractall(tmp)


def written(project):
    """How long each file is after the trace, by its own offsets."""
    with Tmp() as tmp:
        out = os.path.join(tmp, "x.txt")
        assert feign("convert", "-q", project, out).status == 0
        ends = {}
        with open(out, encoding="utf-8") as f:
            for line in f:
                m = re.search(r'mpiio:MPI_File_(?:write|read|i)\w*\(.*\) = (\d+) <[^>]*>.* at=(\d+) .*path="([^"]*)"', line)
                if m and "File_write" in line:
                    ends[m[3][1:]] = max(ends.get(m[3][1:], 0), int(m[1]) + int(m[2]))
        return ends


def check_project(project, ranks):
    with Tmp() as root:
        report = replayed(ranks, project, "--root", root)
        io = [o for name, o in report["ops"].items() if name.startswith("mpiio:")]
        assert report["mismatched"] == 0 and report["bytes_written"] == report["recorded_bytes_written"]
        assert not io or sum(o["replayed"] for o in io) > 0
        assert [r["rank"] for r in report["ranks"]] == list(range(ranks))
        assert sum(r["activities"] for r in report["ranks"]) == report["activities"]
        assert all(r["there"] for r in report["ranks"])
        for name, size in written(project).items():
            assert tree(root)[name][1] >= size, (name, tree(root)[name], size)
        return report


def test_replays_below_one_root_begin_alike():
    """What calls of MPI-IO had made, cut off or removed stood as the last replay had left it. And of an empty file, which an open
    with MPI_MODE_EXCL has just made, MPI may say that a read of it got all that it asked for: the file was there before it then."""
    calls = """File_open name='/new' fid='1' cid='0' flags='73'|File_read_at_all fid='1' offset='%d' size='100' count='100' tid='0'|File_close fid='1'
        |File_open name='/written' fid='2' cid='0' flags='9'|File_write_at fid='2' offset='0' size='30' count='30' tid='0'|File_close fid='2'
        |File_open name='/cut' fid='3' cid='0' flags='8'|File_read_at fid='3' offset='0' size='40' count='40' tid='0'|Barrier cid='0'|File_set_size fid='3' size='10'|File_close fid='3'
        |File_open name='/gone' fid='4' cid='0' flags='8'|File_close fid='4'""".split("|")
    levels = '<Level type="Hostname"><Level type="Rank"><Level type="Thread"/></Level></Level>'
    with Tmp() as tmp:
        project, root = os.path.join(tmp, "x.proj"), os.path.join(tmp, "root")
        os.mkdir(root)
        for rank in range(3):
            removes = ["File_delete name='/gone'"] if rank == 0 else []
            trace = "".join(f"<{call.strip()} time='{i + 1}' end='{i + 1}.5'/>\n" for i, call in enumerate(calls + removes)) % (50 + 100 * rank)
            with open(os.path.join(tmp, f"x_n_{rank}_0.trc"), "w", encoding="utf-8") as f:
                f.write(f"<Program timeAdjustment='0'>\n{trace}</Program>\n")
        with open(project, "w", encoding="utf-8") as f:
            files = "".join(f'<File name="/{name}"><InitialSize>40</InitialSize></File>' for name in ("cut", "gone"))
            members = "".join(f'<Rank global="{r}" local="{r}" cid="0"/>' for r in range(3))
            nodes = "".join(f'<Node name="{r}"><Node name="0"/></Node>' for r in range(3))
            f.write(f'<Application name="x"><FileList>{files}</FileList><Topology>{levels}<Node name="n">{nodes}</Node></Topology>'
                    f'<CommunicatorList><Communicator name="WORLD">{members}</Communicator></CommunicatorList></Application>\n')
        for _ in range(2):
            replayed(3, project, "--root", root)
            left = {name: size for name, (_, size, *_) in tree(root).items() if name != ".feign"}
            assert left == {"new": 0, "written": 30, "cut": 10}, left


def test_hdtrace_projects_replay_with_their_ranks():
    with Tmp() as tmp:
        unpacked(tmp, "partdiff-mpi-io-synced.tgz")
        unpacked(tmp, "generation1-examples.tgz")
        report = check_project(f"{tmp}/partdiff-mpi-io-synced/partdiff-par.proj", 5)
        assert report["bytes_written"] == 262119716 or report["bytes_written"] > 200 << 20
        check_project(f"{tmp}/partdiff-mpi-io/partdiff-par.xml", 3)
        check_project(f"{tmp}/mpi-io/mpi-io-test.xml", 3)
        check_project(f"{tmp}/posix/partdiff-par.xml", 3)


def test_a_trace_of_one_rank_needs_no_mpirun():
    command(1)
    project = corpus("partdiff-par_eeclust/partdiff-par.proj")
    with Tmp() as root:
        r = feign("replay", project, "--root", root, "--replayer", "mpi", "--json", "--require", "1", env={"OMPI_MCA_plm": "isolated"})
        assert r.status == 0, r.err
        assert tree(root)["tmp/visualization.dat"][1] == 44


def test_without_messages_one_process_does_what_all_ranks_did():
    with Tmp() as tmp:
        command(1)
        unpacked(tmp, "generation1-examples.tgz")
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("replay", f"{tmp}/partdiff-mpi-io/partdiff-par.xml", "--root", root, "--replayer", "mpi,comm=none", "--json",
                  "--require", "1", env={"OMPI_MCA_plm": "isolated"})
        assert r.status == 0, r.err
        assert r.json()["bytes_written"] == r.json()["recorded_bytes_written"] > 0


# ---- hand-made traces --------------------------------------------------------------------------

def project(folder, *ranks, comms=""):
    """An HDTrace project of these ranks' calls, or of lists of them, by thread; each call's time and end filled in."""
    threads = [r if r and isinstance(r[0], list) else [r] for r in ranks]
    names = ["".join(f'<Node name="{t}"/>' for t in range(len(lists))) for lists in threads]
    nodes = "".join(f'<Node name="h"><Node name="{r}">{n}</Node></Node>' for r, n in enumerate(names))
    world = "".join(f'<Rank global="{r}" local="{r}" cid="0"/>' for r in range(len(ranks)))
    with open(os.path.join(folder, "t.proj"), "w", encoding="utf-8") as f:
        f.write('<Application name="t">\n<Topology><Level type="Hostname"><Level type="Rank"><Level type="Thread"/></Level></Level>\n'
                f'{nodes}</Topology><CommunicatorList><Communicator name="WORLD">{world}</Communicator>{comms}</CommunicatorList></Application>\n')
    for r, t in ((r, t) for r in range(len(ranks)) for t in range(len(threads[r]))):
        with open(os.path.join(folder, f"t_h_{r}_{t}.trc"), "w", encoding="utf-8") as f:
            f.write("<Program>\n")
            for i, call in enumerate(threads[r][t]):
                f.write(f"<{call} time='{i}.{r}' end='{i}.{r}5'/>\n")
            f.write("</Program>\n")
    return os.path.join(folder, "t.proj")


def recv(source, tag=1):
    return f"Recv fromRank='{source}' fromTag='{tag}' cid='0'"


def send(to, size=8, tag=1):
    return f"Send size='{size}' count='{size}' toRank='{to}' toTag='{tag}' cid='0'"


def listed(folder, *lines):
    """What no program does: "RANK LAYER OP LENGTH VALUE…" (tests/plugins/calls.c). What names it to a command."""
    trace = os.path.join(folder, "t.calls")
    with open(trace, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return [trace, "--provider", os.path.join(BUILD, "tests", "plugins", "calls.so")]


def alone(folder, *lines):
    """The report of one process that makes them, with why it left calls out."""
    r = feign("replay", *listed(folder, *lines), "--root", folder, "--replayer", "mpi", "--json")
    assert r.status == 0, r.err
    return {s["op"]: s["why"] for s in r.json()["skips"]}


def test_texts_of_a_damaged_trace_that_stand_for_objects_of_mpi_are_not_understood():
    command(1)
    with Tmp() as tmp:
        for rank in (1 << 20, (1 << 32) - 1):
            assert alone(tmp, f"0 mpi MPI_Barrier 0 #0.1{{{rank}}}") == {"mpi:MPI_Barrier": "its communicator is not known"}
        for text in ("struct(-1;;MPI_INT)", "struct(-1;0;MPI_INT)"):
            r = feign("replay", *listed(tmp, f"0 mpi MPI_Type_commit 0 {text}"), "--root", tmp, "--replayer", "mpi", "--json")
            assert r.status == 0 and r.json()["emulated"] == 1, r.err


def test_datatypes_with_wide_gaps_are_sent_as_bytes():
    """How far apart the first and the last of them are is more than a number holds."""
    with Tmp() as tmp:
        world, gaps = "#0.1{0-1}", f"1073741825 resized(;0,{1 << 34};MPI_BYTE)"
        trace = listed(tmp, f"0 mpi MPI_Send {1 << 34} 1 MPI_BYTE {(1 << 64) - 1} 1 {world}", f"0 mpi MPI_Send 8 {gaps} 1 1 {world}",
                       f"1 mpi MPI_Recv 8 8 MPI_BYTE 0 1 {world}")
        r = mpirun(2, "replay", *trace, "--root", tmp, "--replayer", "mpi", "--json")
        assert r.status == 0 and r.json()["ops"]["mpi:MPI_Recv"]["matched"] == 1, r.err[-2000:] + r.out


def test_a_stream_that_is_no_rank_of_a_communicator_makes_no_collective_call_on_it():
    command(1)
    with Tmp() as tmp:
        call = "mpi MPI_Allgatherv 8 8 MPI_BYTE 8 MPI_BYTE #0.1{0} 0 8"
        assert alone(tmp, f"0 {call}", f"-1 {call}") == {"mpi:MPI_Allgatherv": "its communicator does not have this rank"}


def test_two_groups_combine_a_datatype_of_which_the_trace_has_no_length():
    """Each asked the other for lengths, and took those of the other's members for those of its own."""
    with Tmp() as tmp:
        groups = "#0.1{0-3|4}"
        trace = listed(tmp, *(f"{r} mpi MPI_Reduce_scatter 32 8 UNTOLD MPI_BOR {groups} 0 8 8 8 8" for r in range(4)),
                       f"4 mpi MPI_Reduce_scatter 32 32 UNTOLD MPI_BOR {groups} 0 32")
        assert replayed(5, *trace, "--root", tmp, "--replayer", "mpi")["replayed"] == 5


def test_a_buffered_send_is_received_when_its_sender_has_ended():
    """Its data are sent piece by piece, as between hosts."""
    with Tmp() as tmp:
        size, world = 1 << 26, "WORLD{0-1}"
        trace = listed(tmp, f"1 mpi MPI_Bsend {size} {size} MPI_BYTE 0 1 {world}", *["0 mpi MPI_Comm_rank 0 0"] * 3, f"0 mpi MPI_Recv {size} {size} MPI_BYTE 1 1 {world}")
        report = replayed(2, *trace, "--root", tmp, "--replayer", "mpi", "--pace", "timed,scale=500", env={"OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
        assert report["ops"]["mpi:MPI_Recv"]["matched"] == 1, report["ops"]


def test_who_joins_ranks_is_checked_as_what_it_is():
    """It writes no file; and MPI is joined once in a process, so that what comes after cannot be had there."""
    command(1)
    checked = feign("check", os.path.join(BUILD, "plugins", "mpi.so"))
    assert "ok   joiner of ranks mpi: can be created\n" in checked.out and "writes its file" not in checked.out, checked.out
    assert checked.status == 0 and "skip replayer mpi: can be created: mpi: MPI was joined and left before" in checked.out, checked.out


def test_what_is_combined_in_a_window_lies_in_it():
    """By its length; the count may say more in a trace that is damaged."""
    with Tmp() as tmp:
        both = lambda call: [f"{r} mpi {call}" for r in range(2)]  # noqa: E731
        trace = listed(tmp, *both("MPI_Win_allocate 0 64 1 0 WORLD{0-1} win"), *both("MPI_Win_fence 0 0 win"),
                       "0 mpi MPI_Accumulate 8 50000000 MPI_LONG 1 0 50000000 MPI_LONG MPI_SUM win", *both("MPI_Win_fence 0 0 win"))
        assert replayed(2, *trace, "--root", tmp, "--replayer", "mpi")["replayed"] == 7


def test_a_receive_without_a_send_ends_all_and_names_the_rank():
    with Tmp() as tmp:
        trace = project(tmp, ["Barrier cid='0'"], ["Barrier cid='0'", recv(0)])
        begin = time.monotonic()
        r = mpirun(2, "replay", trace, "--root", tmp, "--patience", "1s")
        assert r.status != 0 and time.monotonic() - begin < 40
        assert re.search(r"rank 1 \(.*\): .*MPI_Recv.*t_h_1_0.trc:3.* waited \d+ s for other ranks", r.err), r.err
        assert "ENDED" in r.out, r.out


def test_who_waits_for_a_rank_that_goes_on_is_not_out_of_patience():
    """It computes for longer than that, and sends then; on this host, and on what looks like another."""
    with Tmp() as tmp:
        calls = ["Barrier cid='0'", *(send(2, tag=3) for _ in range(3)), send(1)]
        trace = project(tmp, calls, ["Barrier cid='0'", recv(0)], ["Barrier cid='0'", *(recv(0, 3) for _ in range(3))])
        report = replayed(3, trace, "--root", tmp, "--pace", "think,scale=0.5", "--patience", "1s")
        assert report["replayed"] == 11 and report["seconds"] > 1.8, report
        other = os.path.join(tmp, "other")
        with open(other, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec "$@"\nexec unshare --uts sh -c \'hostname other; exec "$@"\' sh "$@"\n')
        os.chmod(other, 0o755)
        if subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("this user has no other host's name")
        launch = command(3, "replay", trace, "--root", tmp, "--pace", "think,scale=0.5", "--patience", "1s", "--json", "--require", "1")
        at = launch.index(FEIGN)
        r = Ran(subprocess.run([*launch[:at], other, *launch[at:]], capture_output=True, env=QUIET, check=False))
        assert r.status == 0 and len({rank["host"] for rank in r.json()["ranks"]}) == 2, r.err


def test_who_waits_for_his_own_child_is_not_out_of_patience():
    with Tmp() as tmp, Tmp() as root:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write("100 1700000000.000000 clone(child_stack=NULL, flags=SIGCHLD) = 101 <0.000010>\n"
                    "100 1700000000.000100 wait4(101, <unfinished ...>\n"
                    '101 1700000000.000200 openat(AT_FDCWD, "/f", O_WRONLY|O_CREAT, 0666) = 3 <0.000010>\n'
                    '101 1700000003.000000 write(3, "abc", 3) = 3 <0.000010>\n101 1700000003.000100 exit_group(0) = ?\n'
                    "100 1700000003.000200 <... wait4 resumed>NULL, 0, NULL) = 101 <3.000100>\n"
                    '100 1700000003.000300 openat(AT_FDCWD, "/f", O_RDONLY) = 3 <0.000010>\n100 1700000003.000400 read(3, "abc", 9) = 3 <0.000010>\n')
        report = replayed(2, trace, "--root", root, "--pace", "think", "--patience", "1s")
        assert report["mismatched"] == 0 and report["seconds"] > 2.5


def test_ranks_that_share_a_process_send_to_each_other():
    with Tmp() as tmp:
        trace = project(tmp, [send(1), recv(3)], [recv(0), send(2, 100000)], [recv(1), send(3, 0)], [recv(2), send(0)])
        for ranks, how in ((4, None), (2, "block"), (2, "cyclic")):
            report = replayed(ranks, trace, "--root", tmp, *(["--map", how] if how else []))
            assert report["replayed"] == 8 and report["emulated"] == 0, report
            assert report["map"] == (how or "")


def test_threads_of_a_rank_that_nothing_orders_are_said():
    with Tmp() as tmp:
        trace = project(tmp, [recv(1), recv(1, 2)], [[send(0)], [send(0, tag=2)]])
        for options, said in (((), 0), (("--order", "depend"), 0), (("--order", "stream"), 1)):
            notes = replayed(2, trace, "--root", tmp, *options)["notes"]
            assert sum("several threads of a rank call MPI (rank 1): " in n for n in notes) == said, (options, notes)


def test_what_a_rank_says_early_is_not_taken_for_what_another_one_says_late():
    """Which threads race, ranks say without waiting for others, and go on to what they agree on next."""
    with Tmp() as tmp:
        trace = project(tmp, [recv(2), recv(2, 7)], [], [[send(0)], [send(0, tag=7)]])
        late = ("#include <mpi.h>\n#include <unistd.h>\n"
                "int MPI_Send(const void *data, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {\n  int me;\n  MPI_Comm_rank(c, &me);\n"
                "  if (me == 2 && tag == 2) usleep(300000);\n  return PMPI_Send(data, n, t, to, tag, c);\n}\n")
        notes = replays_with(tmp, trace, late, "--order", "stream", ranks=3, calls=4)["notes"]
        assert sum("several threads of a rank call MPI (rank 2): " in n for n in notes) == 1, notes


def test_a_signal_ends_who_waits_for_a_rank_that_does_not_come():
    """Before the replay: rank 0 for what others say, or another one for rank 0's answer."""
    hangs = ("#include <mpi.h>\n#include <signal.h>\n#include <unistd.h>\n"
             "static int me, count, process[2];\n"
             "int MPI_Init_thread(int *n, char ***words, int wanted, int *got) {\n  const int status = PMPI_Init_thread(n, words, wanted, got);\n"
             "  const int mine = getpid();\n  PMPI_Comm_rank(MPI_COMM_WORLD, &me);\n"
             "  PMPI_Allgather(&mine, 1, MPI_INT, process, 1, MPI_INT, MPI_COMM_WORLD);\n  return status;\n}\n"
             "int MPI_Send(const void *data, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {\n"
             "  if (me == WHO && tag == WHAT && ++count == TIMES) {\n    kill(process[1 - me], SIGTERM);\n    for (;;) pause();\n  }\n"
             "  return PMPI_Send(data, n, t, to, tag, c);\n}\n")
    gather, tell = 2, 1
    for who, what, said in ((1, gather, "rank 0: interrupted by signal 15, and others do not come"), (0, tell, "rank 1: interrupted by signal 15, and rank 0 does not come")):
        for times in (1, 3):
            with Tmp() as tmp:
                trace = project(tmp, ["Barrier cid='0'"], ["Barrier cid='0'"])
                r = with_functions(tmp, trace, hangs.replace("WHO", str(who)).replace("WHAT", str(what)).replace("TIMES", str(times)))
                assert r.status != 0 and said in r.err and "crashed" not in r.err, (times, r.err)


def test_a_trace_whose_damage_one_rank_alone_reads_ends_all():
    """It was over without a word to the others, who wait for what it needs of them."""
    command(1)
    with Tmp() as tmp:
        path = os.path.join(tmp, "t.feign")
        calls = listed(tmp, *["0 posix getcwd 0"] * 3, *(f"1 posix getcwd {i * 0x9E3779B97F4A7C15 % (1 << 60)}" for i in range(100000)))
        assert feign("convert", "-q", calls[0], path, *calls[1:]).status == 0
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            f.write(bytes(64))
        r = mpirun(2, "replay", path, "--root", tmp, "--replayer", "null", "--order", "stream")
        assert r.status != 0 and re.search(r"rank 1: .*t\.feign: damaged at byte", r.err), r.err


def test_a_thread_that_waits_in_mpi_keeps_no_other_one_waiting():
    """Streams share few threads, but none with one that calls MPI."""
    with Tmp() as tmp:
        trace = project(tmp, [[recv(1)], [send(1, tag=2)], [send(1, tag=3)]], [recv(0, 2), recv(0, 3), send(0)])
        few = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        launch = command(2, "replay", trace, "--root", tmp, "--streams-per-core", "1", "--patience", "5s", "--json", "--require", "1")
        r = Ran(subprocess.run([*few, *launch], capture_output=True, env=QUIET, check=False))
        assert r.status == 0 and r.json()["replayed"] == 6, r.err


def with_functions(tmp, trace, code, *options, ranks=2):
    """A replay with functions of MPI that are these."""
    source, library = os.path.join(tmp, "mpi.c"), os.path.join(tmp, "mpi.so")
    if shutil.which("mpicc") is None or sanitized():
        raise Skip("there is no mpicc, or a sanitizer that wants to be loaded first")
    with open(source, "w", encoding="utf-8") as f:
        f.write(code)
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, source], check=True)
    launch = command(ranks, "replay", trace, "--root", tmp, "--json", "--require", "1", *options)
    at = launch.index("-np")
    return Ran(subprocess.run([*launch[:at], "-x", "LD_PRELOAD=" + library, *launch[at:]], capture_output=True, env=QUIET, check=False))


def replays_with(tmp, trace, code, *options, ranks=2, calls=2):
    """As recorded, with functions of MPI that are these."""
    r = with_functions(tmp, trace, code, *options, ranks=ranks)
    assert r.status == 0 and calls in (None, r.json()["replayed"]), r.err + r.out
    return r.json()


def test_what_is_received_lies_elsewhere_than_what_is_sent():
    with Tmp() as tmp:
        call = "Sendrecv size='8' count='8' toRank='{0}' toTag='1' fromRank='{0}' fromTag='1' cid='0'"
        trace = project(tmp, [call.format(1)], [call.format(0)])
        replays_with(tmp, trace,
                     "#include <mpi.h>\n"
                     "int MPI_Sendrecv(const void *out, int n, MPI_Datatype t, int to, int tag, void *in, int m, MPI_Datatype u, int from,\n"
                     "                 int tag2, MPI_Comm c, MPI_Status *s) {\n"
                     "  *(volatile char *)out = 1;\n  *(volatile char *)in = 2;\n  if (*(volatile char *)out != 1) return MPI_ERR_BUFFER;\n"
                     "  return PMPI_Sendrecv(out, n, t, to, tag, in, m, u, from, tag2, c, s);\n}\n")


def test_calls_that_are_nearly_alike_are_told_apart():
    """Calls are made ready once, for all that say the same: one after the other, by turns, more of them than are kept."""
    kinds = [(size, tag) for size in (1, 2, 3, 4, 8, 9, 40, 1000) for tag in (1001, 1002, 1003, 1008, 1040)] + [(1001, 1002), (1002, 1001)]
    order = kinds[:3] * 4 + kinds * 2 + kinds[::-1] + kinds[:1] * 3
    def begun(calls):  # every other one is not waited for; each has a request of its own
        return [f"I{call[0].lower()}{call[1:]} rid='{i + 1}'" if i % 2 else call for i, call in enumerate(calls)]
    with Tmp() as tmp:
        trace = project(tmp, begun([send(1, size, tag) for size, tag in order]), begun([recv(0, tag) for _, tag in order]))
        checks = "".join(
            f"int MPI_{name}({data}, int n, MPI_Datatype t, int other, int tag, MPI_Comm c{more}) {{\n"
            f"  if (tag >= 1000) {{\n    const int *want = order[{count}++];\n    if ({wrong}tag != want[1]) return MPI_ERR_TAG;\n  }}\n"
            f"  return PMPI_{name}({data.split('*')[1]}, n, t, other, tag, c{passed});\n}}\n"
            for name, data, more, passed, count, wrong in (("Send", "const void *out", "", "", "sent", "n != want[0] || "),
                                                           ("Isend", "const void *out", ", MPI_Request *q", ", q", "sent", "n != want[0] || "),
                                                           ("Recv", "void *in", ", MPI_Status *s", ", s", "received", ""),
                                                           ("Irecv", "void *in", ", MPI_Request *q", ", q", "received", "")))
        replays_with(tmp, trace, f"#include <mpi.h>\nstatic const int order[][2] = {{{', '.join(f'{{{size}, {tag}}}' for size, tag in order)}}};\n"
                                 f"static int sent, received;\n{checks}", calls=2 * len(order))


# In one of many bytes or in many of one: what a call moves.
BYTES = "static MPI_Count bytes(int n, MPI_Datatype t) {\n  MPI_Count size;\n  MPI_Type_size_x(t, &size);\n  return n * size;\n}\n"


def test_messages_of_more_than_an_int_of_bytes_are_whole():
    """Asked of what is called: to move as much would take longer than a test should."""
    with Tmp() as tmp:
        size = 3_000_000_001
        trace = project(tmp, [send(1, size)], [recv(0)])
        replays_with(tmp, trace,
                     "#include <mpi.h>\n" + BYTES +
                     "int MPI_Send(const void *out, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {\n"
                     "  if (bytes(n, t) < 1 << 20) return PMPI_Send(out, n, t, to, tag, c);\n"
                     f"  if (bytes(n, t) != {size}) return MPI_ERR_COUNT;\n"
                     f"  ((volatile char *)out)[0] = 1;\n  ((volatile char *)out)[{size} - 1] = 1;\n  return MPI_SUCCESS;\n}}\n"
                     "int MPI_Recv(void *in, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s) {\n"
                     "  if (bytes(n, t) < 1 << 20) return PMPI_Recv(in, n, t, from, tag, c, s);\n"
                     f"  if (bytes(n, t) < {size}) return MPI_ERR_TRUNCATE;\n"
                     f"  ((volatile char *)in)[{size} - 1] = 1;\n  return MPI_SUCCESS;\n}}\n")


def test_collective_calls_that_are_made_shorter_are_told():
    """There are 16 GiB for all that a rank sends or gets; the report says so where it is less than was recorded."""
    for size, told in ((9_000_000_001, True), (1000, False)):
        with Tmp() as tmp:
            call = f"Allgather size='{size}' count='{size}' cid='0'"
            report = replays_with(tmp, project(tmp, [call], [call]),
                                  "#include <mpi.h>\n" + BYTES +
                                  "int MPI_Allgather(const void *out, int n, MPI_Datatype t, void *in, int m, MPI_Datatype u, MPI_Comm c) {\n"
                                  f"  if (bytes(n, t) > 1000) return bytes(n, t) < {size} ? MPI_SUCCESS : MPI_ERR_COUNT;\n"
                                  "  return PMPI_Allgather(out, n, t, in, m, u, c);\n}\n")
            assert any("are made with fewer bytes" in note for note in report["notes"]) == told, report["notes"]


def test_what_is_combined_for_all_members_has_room():
    """The trace has the length of one part; what each rank gives is as long as all of them."""
    with Tmp() as tmp:
        size = 900_000_000
        call = f"Reduce_scatter_block size='{size}' count='{size}' cid='0'"
        replays_with(tmp, project(tmp, [call], [call]),
                     "#include <mpi.h>\n"
                     "int MPI_Reduce_scatter_block(const void *out, void *in, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {\n"
                     f"  return n == {size} && (char *)in - (char *)out > 2l * n ? MPI_SUCCESS : MPI_ERR_BUFFER;\n}}\n")


# Nothing is moved, or it would take longer than a test should: while this is recorded, and replayed, functions of the same names
# write down what they are to move.
LONG_CALLS = r"""
#include <mpi.h>
int main(int argc, char **argv) {
  static char out[8], in[8];
  int rank, n = 400 * 1000 * 1000, at[] = {0, n}, one[] = {n, 7}, outs[2][2] = {{n + 2, 1}, {3, 9}}, ins[2][2] = {{n + 2, 3}, {1, 9}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm all = MPI_COMM_WORLD;
  MPI_Datatype three;
  MPI_Type_contiguous(3, MPI_DOUBLE, &three);
  MPI_Type_commit(&three);
  MPI_Allgather(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, all);
  MPI_Alltoall(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, all);
  MPI_Gather(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, 0, all);
  MPI_Scatter(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, 1, all);
  MPI_Allgatherv(out, one[rank], MPI_DOUBLE, in, one, at, MPI_DOUBLE, all);
  MPI_Alltoallv(out, outs[rank], at, three, in, ins[rank], at, three, all);
  MPI_Gatherv(out, one[rank], MPI_DOUBLE, in, one, at, MPI_DOUBLE, 0, all);
  MPI_Scatterv(out, one, at, MPI_DOUBLE, in, one[rank], MPI_DOUBLE, 0, all);
  MPI_Reduce_scatter(out, in, one, MPI_DOUBLE, MPI_SUM, all);
  MPI_Reduce_scatter_block(out, in, n, MPI_DOUBLE, MPI_SUM, all);
  MPI_Allreduce(out, in, n, three, MPI_SUM, all);
  MPI_Comm near; // each has the other one four times, or gives to it once
  int other[] = {1 - rank, 1 - rank, 1 - rank, 1 - rank};
  MPI_Dist_graph_create_adjacent(all, rank ? 4 : 1, other, MPI_UNWEIGHTED, rank ? 1 : 4, other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &near);
  MPI_Neighbor_allgather(out, n, MPI_DOUBLE, in, n, MPI_DOUBLE, near);
  MPI_Finalize();
}
"""
# FUNC(name) is MPI_name for the replayer, PMPI_name for the library that records.
LONG_LOOK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static long long bytes(MPI_Datatype t, int n) {
  MPI_Count size;
  PMPI_Type_size_x(t, &size);
  return (long long)n * size;
}
// What each member has is of interest where `all` is.
static int said(const char *call, long long mine, int all, MPI_Datatype t, const int *n, MPI_Datatype u, const int *m) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", getenv("LONG_CALLS"), rank);
  FILE *f = fopen(path, "a");
  fprintf(f, "%s %lld", call, mine);
  for (int i = 0; all && i < 2; ++i) fprintf(f, " %lld %lld", bytes(t, n[i]), m ? bytes(u, m[i]) : 0);
  fprintf(f, "\n");
  return fclose(f);
}
static int root(int r) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == r;
}
#define REAL(name) ((__typeof__(&PMPI_##name))dlsym(RTLD_NEXT, "PMPI_" #name))
#define SMALL(t, n) (bytes(t, n) < 1 << 20)
#define EVEN(name, more, pass)                                                                               \
  int FUNC(name)(const void *o, int n, MPI_Datatype t, void *i, int m, MPI_Datatype u more, MPI_Comm c) {      \
    if (SMALL(t, n)) return REAL(name)(o, n, t, i, m, u pass, c);                                             \
    return said(#name, bytes(t, n), 0, u, 0, u, 0);                                                           \
  }
#define COMMA ,
EVEN(Allgather, , )
EVEN(Alltoall, , )
EVEN(Neighbor_allgather, , )
EVEN(Gather, COMMA int r, COMMA r)
EVEN(Scatter, COMMA int r, COMMA r)
int FUNC(Allgatherv)(const void *o, int n, MPI_Datatype t, void *i, const int *m, const int *at, MPI_Datatype u, MPI_Comm c) {
  if (SMALL(u, m[0])) return REAL(Allgatherv)(o, n, t, i, m, at, u, c);
  return said("Allgatherv", bytes(t, n), 1, u, m, u, 0);
}
int FUNC(Alltoallv)(const void *o, const int *n, const int *p, MPI_Datatype t, void *i, const int *m, const int *q, MPI_Datatype u, MPI_Comm c) {
  return said("Alltoallv", 0, 1, t, n, u, m);
}
int FUNC(Gatherv)(const void *o, int n, MPI_Datatype t, void *i, const int *m, const int *at, MPI_Datatype u, int r, MPI_Comm c) {
  return said("Gatherv", bytes(t, n), root(r), u, m, u, 0);
}
int FUNC(Scatterv)(const void *o, const int *m, const int *at, MPI_Datatype u, void *i, int n, MPI_Datatype t, int r, MPI_Comm c) {
  return said("Scatterv", bytes(t, n), root(r), u, m, u, 0);
}
int FUNC(Reduce_scatter)(const void *o, void *i, const int *m, MPI_Datatype u, MPI_Op op, MPI_Comm c) {
  return said("Reduce_scatter", 0, 1, u, m, u, 0);
}
int FUNC(Reduce_scatter_block)(const void *o, void *i, int n, MPI_Datatype u, MPI_Op op, MPI_Comm c) {
  return said("Reduce_scatter_block", bytes(u, n), 0, u, 0, u, 0);
}
int FUNC(Allreduce)(const void *o, void *i, int n, MPI_Datatype u, MPI_Op op, MPI_Comm c) {
  return SMALL(u, n) ? REAL(Allreduce)(o, i, n, u, op, c) : said("Allreduce", bytes(u, n), 0, u, 0, u, 0);
}
"""


def test_collective_calls_of_more_than_an_int_of_bytes_are_whole():
    if shutil.which("mpicc") is None or sanitized():
        raise Skip("there is no mpicc, or a sanitizer that wants to be loaded first")
    with Tmp() as tmp:
        def made(name, code, *options):
            with open(os.path.join(tmp, name + ".c"), "w", encoding="utf-8") as f:
                f.write(code)
            subprocess.run(["mpicc", *options, "-o", os.path.join(tmp, name), os.path.join(tmp, name + ".c"), "-ldl"], check=True)
            return os.path.join(tmp, name)

        def moved(launch, name, prefix):
            library = made(name, f"#define FUNC(name) {prefix}##name\n" + LONG_LOOK, "-shared", "-fPIC")
            at, said = launch.index("-np"), os.path.join(tmp, name + ".said")
            r = Ran(subprocess.run([*launch[:at], "-x", "LD_PRELOAD=" + library, "-x", "LONG_CALLS=" + said, *launch[at:]], capture_output=True,
                                   env=QUIET, check=False))
            assert r.status == 0, r.err + r.out
            return [open(f"{said}.{rank}", encoding="utf-8").read() for rank in range(2)]

        trace = os.path.join(tmp, "x.feign")
        run = command(2)
        launch = [*run[:4], FEIGN, "record", "--mpi", "-q", "-o", trace, "--", *run[4:-1], made("program", LONG_CALLS)]
        then = moved(launch, "then", "PMPI_")
        now = moved(command(2, "replay", trace, "--root", tmp, "--with", "filter,preset=workload", "--require", "1"), "now", "MPI_")
        assert len(then[0].splitlines()) == 12 and now == then, "\n".join(then + now)


def test_what_cannot_be_mapped_is_an_error():
    with Tmp() as tmp:
        trace = project(tmp, *[["Barrier cid='0'"]] * 3)
        r = mpirun(2, "replay", trace, "--root", tmp)
        assert r.status == 2 and "the trace has 3 ranks, and 2 replay it" in r.err and r.err.count("feign:") == 1, r.err
        report = replayed(2, trace, "--root", tmp, "--map", "block")
        assert report["replayed"] == 3 and report["emulated"] == 0
        report = replayed(2, trace, "--root", tmp, "--map", "block", "--replayer", "mpi,comm=none")
        assert report["emulated"] == 3
        names = os.path.join(tmp, "map")
        for text, said in (("0-1 0\n2 7\n", r"map:2: replay rank 7: there are 0 to 1"), ("0 0\n", "says nothing of recorded rank 1"),
                           ("0 x\n", r'map:1: "0 x": want RECORDED REPLAY'), ("0-5 1\n", "the trace has 0 to 2")):
            with open(names, "w", encoding="utf-8") as f:
                f.write(text)
            r = mpirun(2, "replay", trace, "--root", tmp, "--map", names)
            assert r.status == 2 and re.search(said, r.err), r.err
        r = mpirun(2, "replay", trace, "--root", tmp, "--map", "blok")
        assert r.status == 2 and "--map: open blok: No such file or directory: want block, cyclic, or a file" in r.err, r.err
        r = mpirun(2, "replay", trace, "--root", tmp, "--map", "block", "--order", "trace")
        assert r.status == 2 and "--order trace: several ranks have no order" in r.err, r.err
    refuses("replay", __file__, "--root", ".", "--provider", "tracetext", "--map", "block", text="one process replays all")


def test_an_mpi_file_stays_below_the_root():
    with Tmp() as tmp:
        root, outside = os.path.join(tmp, "root"), os.path.join(tmp, "outside")
        os.mkdir(root)
        os.mkdir(outside)
        with open(os.path.join(outside, "victim"), "w", encoding="utf-8") as f:
            f.write("untouched")
        os.symlink(os.path.join(outside, "victim"), os.path.join(root, "link"))
        os.symlink(outside, os.path.join(root, "dir"))
        calls = []
        for fid, name in enumerate(("/link", "/dir/new", "/../../outside/victim")):
            calls += [f"File_open cid='0' name='{name}' flags='5' fid='{fid}'", f"File_write_at fid='{fid}' offset='0' size='9' count='9'",
                      f"File_close fid='{fid}'"]
        trace = project(tmp, calls, calls)
        r = mpirun(2, "replay", trace, "--root", root, "--no-prepare", "--json")
        assert r.status in (0, 2), r.err
        with open(os.path.join(outside, "victim"), encoding="utf-8") as f:
            assert f.read() == "untouched"
        assert os.listdir(outside) == ["victim"]


# ---- programs of our own, recorded --------------------------------------------------------------

PROGRAMS = Tmp()


@functools.cache
def program_of(name, compile):
    """A program of tests/apps, compiled once."""
    if shutil.which(compile[0]) is None or (compile[0] == "mpif90" and shutil.which("gfortran") is None):
        raise Skip(f"there is no {compile[0]}, or no compiler that it calls")
    source = glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", name + ".*"))[0]
    program = os.path.join(PROGRAMS.name, f"{name}.{len(os.listdir(PROGRAMS.name))}")
    subprocess.run([*compile, "-w", "-o", program, source], check=True)
    return program


def repeats(times):
    """How often what may come otherwise in a race is tried: once where a sanitizer makes it slow, and races others."""
    return range(1 if sanitized() else times)


def recorded(tmp, name, *arguments, ranks=4, compile=("mpicc", "-O2"), keep_raw=False):
    """A trace of a program of tests/apps on these ranks, and the file that it made."""
    launch = command(ranks)[:-1]
    program, made, trace = (os.path.join(tmp, n) for n in (name, "data", name + ".feign"))
    shutil.copy(program_of(name, compile), program)
    r = feign("record", "--mpi", "-q", "-o", trace, *(["--keep-raw"] if keep_raw else []), "--", *launch, program, made, *arguments,
              env={"FEIGN_TESTS": "1"})
    if "is not there" in r.err:
        raise Skip(r.err.strip())
    assert r.status == 0, (r.status, r.out, r.err)
    return trace, made


SAYS = r"""
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char text[1000] = "";
  MPI_Init(&argc, &argv);
  write(1, text, sizeof text);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


def test_what_a_rank_had_before_it_became_one():
    """Shells and interpreters start ranks with files that they opened, or become them by exec; a launcher hands its own on."""
    launch = " ".join(command(2)[4:-1])
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    with Tmp() as tmp:
        program, script = os.path.join(tmp, "says"), os.path.join(tmp, "starts.py")
        with open(program + ".c", "w", encoding="utf-8") as f:
            f.write(SAYS)
        subprocess.run(["mpicc", "-w", "-o", program, program + ".c"], check=True)
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"import os, subprocess\nwith open('py.' + os.environ['OMPI_COMM_WORLD_RANK'], 'w') as f:\n"
                    f"    subprocess.run(['{program}'], stdout=f)\n    f.write('hello\\n')\n")
        ways = {
            "exec": (f"{launch} sh -c 'exec {program} > exec.$OMPI_COMM_WORLD_RANK'", 1000),
            "fork": (f"{launch} sh -c '{program} > fork.$OMPI_COMM_WORLD_RANK; true'", 1000),
            "both": (f"{launch} sh -c 'exec 5<> both.$OMPI_COMM_WORLD_RANK; {program} >&5; echo hello >&5'", 1006),
            "py": (f"{launch} python3 {script}", 1006),
            "all": (f"{launch} {program} > all", 2000)}
        for name, (way, size) in ways.items():
            trace, there = os.path.join(tmp, name + ".feign"), os.path.join(tmp, "there", name)
            os.makedirs(there)
            r = feign("record", "--mpi", "-q", "-o", trace, "--", "sh", "-c", way, cwd=there, env={**QUIET, "FEIGN_TESTS": "1"})
            if "is not there" in r.err:
                raise Skip(r.err.strip())
            assert r.status == 0, r.err
            made = {n: os.path.getsize(os.path.join(there, n)) for n in os.listdir(there)}
            assert set(made.values()) == {size}, (name, made)
            with Tmp() as root:
                r = mpirun(2, "replay", trace, "--root", root)
                assert r.status == 0, r.err
                assert {n: os.path.getsize(os.path.join(root + there, n)) for n in made} == made, name


def replays_as_recorded(name, *arguments):
    with Tmp() as tmp:
        trace, made = recorded(tmp, name, *arguments)
        for _ in repeats(3):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload")
                assert len([r for r in report["ranks"] if r["streams"]]) == 4, report["ranks"]
                assert os.path.getsize(root + made) == os.path.getsize(made)
                assert os.stat(root + made).st_mode & 0o022 == 0, "a replay makes no files that everybody may write"
        return report


def test_checkpoint_with_a_barrier_after_each_write():
    report = replays_as_recorded("checkpoint", 10, 5000)
    assert report["ops"]["mpiio:MPI_File_write_at"]["matched"] == 40 and report["ops"]["mpi:MPI_Barrier"]["replayed"] == 40


def recorded_where_it_works(tmp, ranks, text):
    """The recording of a program in C, and the directory that its ranks worked in."""
    launch, program, trace, there = command(ranks)[:-1], compiled(tmp, "program", text), os.path.join(tmp, "t.feign"), os.path.join(tmp, "there")
    os.mkdir(there)
    r = feign("record", "--mpi", "-q", "-o", trace, "--", *launch, program, cwd=there, env={**QUIET, "FEIGN_TESTS": "1"})
    if "is not there" in r.err:
        raise Skip(r.err.strip())
    assert r.status == 0, r.err
    return trace, there


def test_what_a_project_has_no_place_for_is_named():
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, SAYS)
        r = feign("convert", trace, os.path.join(tmp, "x.proj"))
        assert r.status == 0 and re.search(r"calls of layer posix are not written: .*\d+ write", r.err), r.err


ENDS_BEFORE_MPI = r"""
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char bytes[64] = "";
  int rank;
  MPI_File f;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef OPENS
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  for (int i = 0; i < 3 && rank == 0; ++i) MPI_File_write_at(f, 64 * rank, bytes, 64, MPI_BYTE, &status);
#else
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  MPI_File_write_at_all(f, 64 * rank, bytes, rank == 0 ? -1 : 64, MPI_BYTE, &status);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_write_at_all_begin(f, 64 * rank, bytes, 64, MPI_BYTE);
  MPI_File_write_at_all_end(f, bytes, &status);
#endif
  usleep(300000);
  _exit(0);
}
"""


def test_a_program_that_ends_without_finalize_is_replayed_to_its_end():
    """What some rank did not come to is left out, and what goes with it; a call that failed on one is made by all."""
    lacks = "1 call whose other half the trace lacks"
    for first, lost, matched, skipped in (("", "mpiio:MPI_File_write_at_all_begin+mpiio:MPI_File_write_at_all_end", 5, 1), ("#define OPENS", "mpiio:MPI_File_open", 0, 4)):
        with Tmp() as tmp:
            program, trace = compiled(tmp, "program", first + ENDS_BEFORE_MPI), os.path.join(tmp, "t.feign")
            r = feign("record", "--mpi", "-q", "-o", trace, "--", *command(2)[:-1], program, cwd=tmp, env={**QUIET, "FEIGN_TESTS": "1"})
            if "is not there" in r.err:
                raise Skip(r.err.strip())
            for dropped in ("", lost):
                how = ("--with", f"filter,drop=yes,rank=1,state=drop,op={lost}") if dropped else ()
                with Tmp() as root:
                    r = mpirun(2, "replay", trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", "--json", *how)
                    assert r.status == 0 and (lacks in r.err) == bool(dropped), (lost, dropped, r.err)
                    ops = {name: (op["matched"], op["skipped"]) for name, op in r.json()["ops"].items() if name.startswith("mpiio:")}
                    if dropped:
                        assert [sum(n) for n in zip(*ops.values())] == [matched, skipped], ops


def test_calls_whose_other_half_went_with_a_rank_that_was_killed_are_left_out():
    """What rank 1 sends as it is lost: receives of every kind had their messages, and collective calls begin that not all come to."""
    with Tmp() as tmp:
        program, trace = compiled(tmp, "program", """
            #include <fcntl.h>
            #include <mpi.h>
            #include <signal.h>
            #include <sys/mman.h>
            #include <unistd.h>
            #include "%s/include/feign_record.h"
            static void until(volatile int* at, int n) { while (*at < n) usleep(100); }
            int main(int argc, char** argv) {
              int rank, n = 8;
              char out[8] = "", in[8], other[8];
              MPI_Request q[2];
              MPI_Message message;
              MPI_Comm all = MPI_COMM_WORLD;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(all, &rank);
              const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
              if (ftruncate(fd, 4096) != 0) return 1;
              volatile int* const at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
              if (rank == 0) MPI_Send(out, n, MPI_BYTE, 1, 1, all);
              if (rank == 1) MPI_Recv(in, n, MPI_BYTE, 0, 1, all, MPI_STATUS_IGNORE);
              MPI_Barrier(all);
              __atomic_fetch_add(&at[0], 1, 5);
              until(&at[0], 4);
              if (rank == 0) {
                feign_record_pause();
                at[1] = 1;
                until(&at[2], 1);
                feign_record_resume();
                at[3] = 1;
              } else if (rank == 1) {
                until(&at[1], 1);
                for (int i = 0; i < 6; ++i) MPI_Send(out, n, MPI_BYTE, 0, 1, all);
                MPI_Send(out, n, MPI_BYTE, 2, 1, all);
                at[2] = 1;
                until(&at[4], 3);
                raise(SIGKILL);
              }
              until(&at[3], 1);
              if (rank == 0) {
                MPI_Recv(in, n, MPI_BYTE, 1, 1, all, MPI_STATUS_IGNORE);
                MPI_Irecv(in, n, MPI_BYTE, 1, 1, all, q);
                MPI_Wait(q, MPI_STATUS_IGNORE);
                MPI_Irecv(in, n, MPI_BYTE, MPI_ANY_SOURCE, 1, all, q);
                MPI_Wait(q, MPI_STATUS_IGNORE);
                MPI_Probe(1, 1, all, MPI_STATUS_IGNORE);
                MPI_Recv(in, n, MPI_BYTE, MPI_ANY_SOURCE, 1, all, MPI_STATUS_IGNORE);
                MPI_Recv_init(in, n, MPI_BYTE, 1, 1, all, &q[0]);
                MPI_Recv_init(other, n, MPI_BYTE, 2, 2, all, &q[1]);
                MPI_Startall(2, q);
                MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
                MPI_Mprobe(1, 1, all, &message, MPI_STATUS_IGNORE);
                MPI_Send(out, n, MPI_BYTE, 2, 3, all);
              } else if (rank == 2) {
                MPI_Send(out, n, MPI_BYTE, 0, 2, all);
                MPI_Recv(in, n, MPI_BYTE, 0, 3, all, MPI_STATUS_IGNORE);
                MPI_Sendrecv(out, n, MPI_BYTE, 3, 4, in, n, MPI_BYTE, 1, 1, all, MPI_STATUS_IGNORE);
                MPI_Ibarrier(all, q);
              } else {
                MPI_Recv(in, n, MPI_BYTE, 2, 4, all, MPI_STATUS_IGNORE);
                MPI_Bcast(out, n, MPI_BYTE, 3, all);
              }
              __atomic_fetch_add(&at[4], 1, 5);
              pause();
            }""" % TOP), os.path.join(tmp, "t.feign")
        r = feign("record", "--mpi", "-q", "-o", trace, "--", *command(4)[:-1], program, os.path.join(tmp, "memory"), env={**QUIET, "FEIGN_TESTS": "1"})
        if "is not there" in r.err:
            raise Skip(r.err.strip())
        assert r.status == 128 + signal.SIGKILL, (r.status, r.err)
        for ranks, how in ((4, ()), (2, ("--map", "block")), (3, ("--map", "cyclic")), (4, ("--replayer", "posix", "--replayer", "mpi,comm=order"))):
            with Tmp() as root:
                r = mpirun(ranks, "replay", trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", "--require", "1", "--json", *how)
                assert r.status == 0, (how, r.err)
                assert "not all ranks came to MPI_Finalize: 10 calls whose other halves the trace lacks are left out" in r.err, r.err
                ops = {name[4:]: (op["matched"], op["skipped"]) for name, op in r.json()["ops"].items() if name.startswith("mpi:")}
                assert ops["MPI_Recv"] == (3, 2) and ops["MPI_Irecv"] == (0, 2) and ops["MPI_Send"] == (3, 0), ops
                assert [ops[name] for name in ("MPI_Barrier", "MPI_Sendrecv", "MPI_Startall")] == [(4, 0), (1, 0), (1, 0)], ops
                assert [ops[name] for name in ("MPI_Probe", "MPI_Mprobe", "MPI_Ibarrier", "MPI_Bcast")] == [(0, 1)] * 4, ops


def test_what_lies_in_a_call_that_never_ended_is_made_on_the_file_that_mpi_opened():
    """Of a rank that is killed in a call of MPI-IO the trace has what lies in that, and so it is where a filter drops the call: EBADF it was."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, """
            #include <mpi.h>
            int main(int argc, char **argv) {
              MPI_File f;
              char data[100] = "";
              int rank;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_File_open(MPI_COMM_WORLD, "made", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
              MPI_File_write_at(f, rank * 100, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
              MPI_File_set_size(f, 777);
              MPI_File_close(&f);
              MPI_Finalize();
              return 0;
            }
            """)
        with Tmp() as root:
            report = replayed(2, trace, "--root", root, "--with", "filter,preset=workload", "--with", "filter,drop=yes,op=mpiio:MPI_File_write_at+mpiio:MPI_File_set_size")
            assert report["ops"]["pwrite64"]["matched"] == 2 and report["ops"]["ftruncate"]["matched"] >= 1, report["ops"]
            assert "mpiio:MPI_File_set_size" not in report["ops"] and os.path.getsize(f"{root}{there}/made") == 777


def test_a_call_of_mpi_that_recording_needs_and_that_fails_costs_the_program_nothing():
    """What it would have told is missing in the trace; what the program did is there, and replays."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, """
            #include <mpi.h>
            int PMPI_Bcast(void *at, int n, MPI_Datatype type, int root, MPI_Comm comm) { return MPI_ERR_OTHER; }
            int PMPI_Allgather(const void *out, int n, MPI_Datatype type, void *in, int m, MPI_Datatype other, MPI_Comm comm) { return MPI_ERR_OTHER; }
            int PMPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *made) { return MPI_ERR_OTHER; }
            int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group) { return MPI_ERR_OTHER; }
            int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group) { return MPI_ERR_OTHER; }
            int main(int argc, char **argv) {
              int rank, ranks, one[2] = {0}, weight = 1, from, to;
              MPI_Comm half, both, ring;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_Comm_size(MPI_COMM_WORLD, &ranks);
              MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
              MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank, 0, &both);
              MPI_Barrier(both);
              from = to = 1 - rank;
              MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, &weight, 1, &to, &weight, MPI_INFO_NULL, 0, &ring);
              MPI_Neighbor_allgather(&rank, 1, MPI_INT, one, 1, MPI_INT, ring);
              MPI_Finalize();
              return one[0] == to ? 0 : 1;
            }
            """)
        report = replayed(2, trace, "--root", tmp, "--with", "filter,preset=workload")
        assert "mpi:MPI_Neighbor_allgather" in report["ops"], report["ops"]


FINDS = r"""
#include <mpi.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(50000);
    mkdir("there", 0700);
  } else {
    while (access("there", F_OK) != 0) usleep(500);
    close(open("there/f", O_WRONLY | O_CREAT, 0600));
  }
  MPI_Finalize();
  return 0;
}
"""


def test_ranks_that_find_each_other_by_name_are_ordered_if_asked_for():
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, FINDS)
        with Tmp() as root:
            report = mpirun(2, "replay", trace, "--root", root, "--json").json()
            assert report["mismatched"] > 0 and any("--order depend keeps the recorded order between ranks" in note for note in report["notes"]), report["notes"]
        with Tmp() as root:
            # (What mpirun's own directory shows of others that run meanwhile is none of theirs.)
            report = replayed(2, trace, "--root", root, "--order", "depend", "--with", "filter,preset=workload")
            assert not report["notes"] and os.path.exists(f"{root}{there}/there/f"), report["notes"]
        # Rank 0 waits in its barrier for ever, and rank 1 for what rank 0 does next: it says so.
        with Tmp() as root:
            lacks = ("replay", trace, "--root", root, "--order", "depend", "--with", "filter,op=mpi:MPI_Barrier,rank=1,drop=yes", "--patience")
            r = mpirun(1, *lacks, "50s", ":", "-np", "1", FEIGN, *lacks, "1s")
            assert r.status == 2 and re.search(r"stream \d+ in \S+ at \S+, which comes after stream \d+ \(of rank 0, rule \w+\), has waited \d+ s", r.err), r.err


EARLY = r"""
#include <mpi.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static void opens(const char* name, int mode, int reads) {
  static char bytes[5000];
  MPI_File f;
  MPI_File_open(MPI_COMM_SELF, name, mode, MPI_INFO_NULL, &f);
  if (reads) MPI_File_read(f, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&f);
}
int main(int argc, char** argv) {
  static char bytes[5000];
  const int rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
  if (rank == 0) {
    usleep(400000);
    const int fd = open("early", O_WRONLY | O_CREAT, 0600);
    usleep(100000);
    write(fd, bytes, sizeof bytes);
    close(fd);
  } else if (rank == 1) {
    usleep(200000);
    DIR* d = opendir(".");
    while (readdir(d) != 0) continue;
    closedir(d);
  }
  MPI_Init(&argc, &argv);
  if (rank == 2) opens("early", MPI_MODE_RDONLY, 1);
  if (rank == 3) opens("made", MPI_MODE_WRONLY | MPI_MODE_CREATE, 0);
  MPI_Finalize();
  return 0;
}
"""


def test_files_that_mpi_opens_are_as_ranks_left_them_before_mpi_began():
    """MPI_Init brings all ranks together, and is not made: who opens a file comes after who wrote it, and a new one after who looked for it."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 4, EARLY)
        for order in ((), ("--order", "depend")):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *order)
                assert report["ops"]["mpiio:MPI_File_read"]["matched"] == 1 and report["ops"]["getdents64"]["matched"] == 2, report["ops"]
                assert os.path.getsize(root + there + "/early") == 5000


def test_what_mpi_itself_does_is_made_too():
    """Without a filter: mpirun's and the library's own files, which ranks find by name before MPI can order anybody, and take away after it."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "checkpoint", 10, 5000)
        for _ in repeats(3):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root)
                assert report["mismatched"] == 0, report["mismatches"]
                assert report["ops"]["mpi:MPI_Init"]["skipped"] == 4 and report["ops"]["openat"]["replayed"] > 500, report["ops"]
                assert os.path.getsize(root + made) == os.path.getsize(made)
        with Tmp() as root:
            report = feign("replay", trace, "--root", root, "--replayer", "posix", "--replayer", "mpi,comm=none", "--json",
                           env={"OMPI_MCA_plm": "isolated"}).json()
            assert report["mismatched"] == 0 and report["ops"]["mpi:MPI_Init"]["skipped"] == 4, report["mismatches"]


TWICE = r"""
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
  MPI_File file;
  int rank;
  char bytes[1000] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    MPI_File_open(MPI_COMM_WORLD, argv[i], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * sizeof bytes, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    if (i + 1 < argc && argv[i + 1][0] == '-') {  // is not closed, nor MPI_Finalize called
      usleep(rank == 1 ? 200000 : 0);  // what is under way as it is killed is in no trace
      if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&file);
  }
  return MPI_Finalize();
}
"""


# Ranks of two programs wait for each other once, by what is in no trace.
MEET = r"""
#include <mpi.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>
static void meet(void) {
  static volatile int* here;
  if (here != NULL) return;
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int id = shmget(atoi(getenv("MEETS")), sizeof(int), IPC_CREAT | 0600);
  here = shmat(id, NULL, 0);
  __sync_fetch_and_add(here, 1);
  for (int n = 0; n < 20000 && *here < 2 * ranks; ++n) usleep(1000);
  shmctl(id, IPC_RMID, NULL);
}
"""


def compiled(tmp, name, source):
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    program = os.path.join(tmp, name)
    with open(program + ".c", "w", encoding="utf-8") as f:
        f.write(source)
    subprocess.run(["mpicc", "-o", program, program + ".c"], check=True)
    return program


def record_script(trace, script):
    """What a shell does, launchers among it."""
    r = feign("record", "--mpi", "-q", "-o", trace, "--", "sh", "-c", script, env={"FEIGN_TESTS": "1"})
    if "is not there" in r.err:
        raise Skip(r.err.strip())
    assert r.status == 0, r.err


def test_what_comes_after_a_launcher_comes_after_its_ranks():
    """Two of them, and what looks at the files then: the second one's ranks did not wait for those of the first, nor did the end."""
    launch = " ".join(command(2)[4:-1])
    with Tmp() as tmp:
        one, other, trace = (os.path.join(tmp, n) for n in ("one", "other", "t.feign"))
        program = compiled(tmp, "twice", TWICE)
        for ends in ("", "-"):
            work = f"{launch} {program} {one} {ends}; {launch.replace('-np 2', '-np 4')} {program} {other} {one}; cat {one} {other} > {tmp}/both; ls {tmp} > {tmp}/list"
            record_script(trace, work)
            for layer in ((), ("--layer", "posix")):
                with Tmp() as root:
                    replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "9s", *layer)
                    assert os.path.getsize(f"{root}{tmp}/both") == 8000, (ends, layer)
            for made in (one, other, trace):
                os.unlink(made)


def test_programs_that_ran_at_a_time_are_not_taken_for_one():
    """Both have a rank 0 and a rank 1: they were replayed as if what one sent could be for the other's."""
    launch = " ".join(command(2)[4:-1])
    with Tmp() as tmp:
        one, other, trace = (os.path.join(tmp, n) for n in ("one", "other", "t.feign"))
        program = compiled(tmp, "twice", MEET + TWICE.replace("MPI_File_close", "meet(), MPI_File_close"))
        work = ""
        for name, opens in (one, 3), (other, 4):  # each with a directory for what mpirun makes: two that make one at once may fail
            os.mkdir(name + ".tmp")
            work += f"TMPDIR={name}.tmp MEETS={os.getpid()} {launch} {program} {' '.join([name] * opens)} & "
        work += "wait"
        record_script(trace, work)
        info = feign("info", "--json", trace).json()
        assert [n for n in info["notes"] if n.startswith("several programs of MPI ran at once")], info["notes"]
        workload = ("--with", "filter,preset=workload", "--patience", "9s")
        for ranks in 2, 4:
            for layer in ((), ("--layer", "posix")):
                with Tmp() as root:
                    r = mpirun(ranks, "replay", trace, "--root", root, *workload, *layer)
                    assert r.status == 2 and "several programs of MPI ran at once" in r.err, (r.status, r.err, r.out)
        # What the error advises.
        alone = re.search(r"filter,process=[0-9+]+", r.err)[0]
        started = {s["process"] for s in info["streams"] if s["rank"] >= 0}
        assert len(started) == 4 and len(alone.split("+")) == 2, (alone, started)
        with Tmp() as root:
            assert replayed(2, trace, "--root", root, "--with", alone, *workload)["ops"]["mpiio:MPI_File_write_at_all"]["mismatched"] == 0
            assert len(set(os.listdir(root + tmp)) & {"one", "other"}) == 1
        for launcher in (None, 2):
            with Tmp() as root:
                how = ("replay", trace, "--root", root, *workload[:2], "--order", "depend", "--replayer", "posix", "--require", "1")
                r = feign(*how) if launcher is None else mpirun(launcher, *how)
                assert r.status == 0 and "several programs of MPI ran at once" in r.err, (r.status, r.err)
                assert {"one", "other"} <= set(os.listdir(root + tmp))
        # Of rank 0 alone: it sends to nobody, but its files are called alike.
        work = work.replace("-np 2", "-np 1")
        for made in (trace, one, other):
            os.unlink(made)
        assert feign("record", "--mpi", "-q", "-o", trace, "--", "sh", "-c", work, env={"FEIGN_TESTS": "1"}).status == 0
        for more, status, text in (((), 2, r"filter,process=[0-9]+\) or"), (("--replayer", "posix", "--order", "depend"), 0, "^$")):
            with Tmp() as root:
                r = mpirun(2, "replay", trace, "--root", root, *workload, *more)
                assert r.status == status and re.search(text, r.err), (r.status, r.err)


def test_ring_of_readers_whose_receives_are_wildcards():
    report = replays_as_recorded("ring", 8, 5000)
    assert report["ops"]["mpi:MPI_Recv"]["replayed"] == 31 and report["ops"]["pread64"]["matched"] >= 32


def test_solver_with_views_requests_and_collective_checkpoints():
    report = replays_as_recorded("solver", 8, 64)
    assert report["ops"]["mpiio:MPI_File_write_all"]["matched"] == 8 and report["ops"]["mpiio:MPI_File_read_all"]["matched"] == 4


def test_programs_that_load_mpi_late_are_recorded_as_others_are():
    launch = command(3)[:-1]
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    with Tmp() as tmp, Tmp() as root:
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record", "late_mpi.c")
        program, extension, made, trace = (os.path.join(tmp, n) for n in ("late", "extension.so", "data", "t.feign"))
        subprocess.run(["mpicc", "-shared", "-fPIC", "-DEXTENSION", "-o", extension, source, "-lmpi_mpifh"], check=True)
        subprocess.run(["cc", "-o", program, source, "-ldl"], check=True)
        # By a launcher, and without one; and where the loader looks for all at once, which the wrappers' MPI_… are not there for yet.
        for ranks, how, now in ((3, [*launch, program, extension, made], {}), (1, [program, extension, made, "unasked"], {}),
                                (3, [*launch, program, extension, made], {"LD_BIND_NOW": "1"})):
            r = feign("record", "--mpi", "-q", "-o", trace, "--", *how, env={"FEIGN_TESTS": "1", **now})
            if "is not there" in r.err:
                raise Skip(r.err.strip())
            assert r.status == 0, r.err
            below = os.path.join(root, str(ranks) + "".join(now))
            os.mkdir(below)
            ops = replayed(ranks, trace, "--root", below, "--with", "filter,preset=workload")["ops"]
            counted = "matched" if ranks > 1 else "activities"   # one rank alone makes the calls of POSIX
            for name in ("mpi:MPI_Allreduce", "mpiio:MPI_File_write_at_all", "mpi:MPI_Barrier"):
                assert ops[name][counted] == ranks, ops[name]
            assert os.path.getsize(below + made) == os.path.getsize(made) == 4 * ranks
            os.unlink(made)
            os.unlink(trace)


TOOL = r"""
#include <mpi.h>
#include <stdio.h>
static int calls, sent;
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int MPI_Send(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  return ++sent, PMPI_Send(b, n, t, to, tag, c);
}
int MPI_Barrier(MPI_Comm c) { return ++calls, PMPI_Barrier(c); }
int MPI_Finalize(void) {
  int rank, all;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&sent, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d barriers, %d sends\n", calls, all);
  return PMPI_Finalize();
}
"""
USES_TOOL = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank, x = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) {
    if (rank == 1) MPI_Send(&x, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&x, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return MPI_Finalize();
}
"""


def test_tools_for_profiling_see_what_they_see_and_their_calls_are_recorded_once():
    """A tool calls PMPI_…, past the wrappers: nothing was recorded where it is part of the program, not even the ranks; a library was passed over."""
    launch = command(2)[:-1]
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    with Tmp() as tmp:
        tool, main_, library, trace = (os.path.join(tmp, n) for n in ("tool.c", "main.c", "libtool.so", "t.feign"))
        for path, text in ((tool, TOOL), (main_, USES_TOOL)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, tool], check=True)
        one, other = os.path.join(tmp, "one"), os.path.join(tmp, "other")
        subprocess.run(["mpicc", "-o", one, main_, tool], check=True)
        subprocess.run(["mpicc", "-o", other, main_, library, f"-Wl,-rpath,{tmp}"], check=True)
        # A third, whose read-only part ends within a page, as those of old linkers do: the loader leaves that page alone.
        odd = os.path.join(tmp, "odd")
        os.mkdir(odd + ".d")
        with open(library, "rb") as f:
            image = bytearray(f.read())
        headers, count = struct.unpack_from("<Q", image, 32)[0], struct.unpack_from("<H", image, 56)[0]
        for at in range(headers, headers + 56 * count, 56):
            if struct.unpack_from("<I", image, at)[0] == 0x6474E552:  # PT_GNU_RELRO
                struct.pack_into("<Q", image, at + 40, struct.unpack_from("<Q", image, at + 40)[0] + 256)
        with open(os.path.join(odd + ".d", "libtool.so"), "wb") as f:
            f.write(image)
        subprocess.run(["mpicc", "-o", odd, main_, os.path.join(odd + ".d", "libtool.so"), f"-Wl,-rpath,{odd}.d"], check=True)
        for program in (one, other, odd):
            r = feign("record", "--mpi", "-q", "-o", trace, "--", *launch, program, env={"FEIGN_TESTS": "1"})
            if "is not there" in r.err:
                raise Skip(r.err.strip())
            assert r.status == 0 and r.out == "3 barriers, 3 sends\n", (program, r.out, r.err)
            with Tmp() as root:
                ops = replayed(2, trace, "--root", root, "--with", "filter,preset=workload")["ops"]
                made = {name: ops[f"mpi:MPI_{name}"]["matched"] for name in ("Send", "Recv", "Barrier", "Reduce")}
                assert made == {"Send": 3, "Recv": 3, "Barrier": 6, "Reduce": 2}, (program, made)


def test_ranks_that_share_a_process_meet_in_it():
    for name, arguments in (("checkpoint", (10, 5000)), ("ring", (8, 5000)), ("solver", (8, 64))):
        with Tmp() as tmp:
            trace, made = recorded(tmp, name, *arguments)
            names = os.path.join(tmp, "map")
            with open(names, "w", encoding="utf-8") as f:
                f.write("0 1\n1-2 0\n3 1\n")
            for ranks, how, layer in ((2, "block", "mpiio"), (2, "block", "posix"), (3, "cyclic", "mpiio"), (2, names, "mpiio")):
                with Tmp() as root:
                    report = replayed(ranks, trace, "--root", root, "--map", how, "--layer", layer, "--with", "filter,preset=workload")
                    assert report["mismatched"] == 0 and os.path.getsize(root + made) == os.path.getsize(made)
                    meetings = [o for op, o in report["ops"].items() if op in ("mpi:MPI_Barrier", "mpi:MPI_Allreduce")]
                    assert all(o["replayed"] == o["activities"] and o["emulated"] == 0 for o in meetings), meetings
                    assert meetings or name == "ring"


TOGETHER = r"""
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  enum { kMany = 4, kBytes = 2000 };
  static char in[kMany][4 * kBytes], out[kMany][4 * kBytes];
  int rank, lengths[] = {10, 20, 30, 40}, places[] = {0, 10, 30, 60};
  char name[16];
  MPI_Comm half, again;
  MPI_Request of[kMany + 1], one;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 0; i < 50; ++i) {
    MPI_Isend(out[0], 70000 / 20, MPI_CHAR, (rank + 1) % 4, i, MPI_COMM_WORLD, &of[kMany]);
    MPI_Ibcast(out[0], kBytes, MPI_CHAR, i % 4, MPI_COMM_WORLD, &of[0]);
    MPI_Iallreduce(out[1], in[1], kBytes / 4, MPI_INT, MPI_SUM, half, &of[1]);
    if (rank == i % 4) usleep(300);
    MPI_Barrier(half);
    MPI_Ialltoall(out[2], kBytes, MPI_CHAR, in[2], kBytes, MPI_CHAR, MPI_COMM_WORLD, &of[2]);
    MPI_Iscatter(out[3], 100, MPI_CHAR, in[3], 100, MPI_CHAR, 2, MPI_COMM_WORLD, &of[3]);
    MPI_Recv(in[0], sizeof in[0], MPI_CHAR, (rank + 3) % 4, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i % 2) {
      MPI_Waitall(kMany + 1, of, MPI_STATUSES_IGNORE);
    } else {
      int done = 0;
      while (!done) MPI_Test(&of[(rank + 2) % 4], &done, MPI_STATUS_IGNORE);
      for (int k = kMany; k >= 0; --k) MPI_Wait(&of[k], MPI_STATUS_IGNORE);
    }
    MPI_Iallgatherv(out[0], lengths[rank], MPI_CHAR, in[0], lengths, places, MPI_CHAR, MPI_COMM_WORLD, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
  }
  MPI_Comm_idup(half, &again, &one);
  MPI_Wait(&one, MPI_STATUS_IGNORE);
  MPI_Barrier(again);
  sprintf(name, "of.%d", rank);
  close(open(name, O_WRONLY | O_CREAT, 0600));
  MPI_Finalize();
  return 0;
}
"""


def test_ranks_that_share_a_process_begin_collective_calls():
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 4, TOGETHER)
        for ranks, how, comm in ((2, "block", "real"), (3, "cyclic", "real"), (2, "cyclic", "order")):
            with Tmp() as root:
                report = replayed(ranks, trace, "--root", root, "--map", how, "--layer", f"mpi,comm={comm}", "--with", "filter,preset=workload")
                begun = [o for op, o in report["ops"].items() if op.startswith("mpi:MPI_I") and op != "mpi:MPI_Init"]
                assert len(begun) == 6 and all(o["matched"] == o["activities"] for o in begun), begun
                assert sorted(os.listdir(root + there)) == [f"of.{i}" for i in range(4)]


def test_ranks_that_share_a_process_open_files_at_the_same_time():
    """Each by a number of its own: one that two had taken was closed under the other's hands, and the others waited for ever."""
    with Tmp() as tmp:
        calls = [[call for i in range(100) for call in (
            f"File_open cid='0' name='/f{i}' flags='5' fid='{i}'", f"File_write_at fid='{i}' offset='{r}' size='{i + 1}' count='{i + 1}'",
            f"File_close fid='{i}'")] for r in range(8)]
        trace = project(tmp, *calls)
        for _ in repeats(3):
            with Tmp() as root:
                report = replayed(2, trace, "--root", root, "--map", "block", "--order", "stream", "--pace", "afap", "--no-prepare")
                assert report["ops"]["mpiio:MPI_File_open"]["matched"] == 800 and report["mismatched"] == 0
                assert all(os.path.getsize(f"{root}/f{i}") == i + 8 for i in range(100))


def test_a_file_that_one_of_them_cannot_open_keeps_nobody_waiting():
    with Tmp() as tmp, Tmp() as root:
        read_and_write = 2 + 8  # MPI allows one of them
        trace = project(tmp, *[[f"File_open cid='0' name='/f' flags='{flags}' fid='1'", "File_write_at_all fid='1' offset='0' size='9' count='9'",
                                "File_set_size fid='1' size='5'", "File_close fid='1'", "Barrier cid='0'"] for flags in (5, read_and_write, 5)])
        r = mpirun(2, "replay", trace, "--root", root, "--map", "block", "--order", "stream", "--no-prepare", "--json")
        ops = r.json()["ops"]
        assert r.status == 0 and ops["mpi:MPI_Barrier"]["matched"] == 3, r.err + r.out
        for op in ("open", "write_at_all", "set_size", "close"):
            assert (ops[f"mpiio:MPI_File_{op}"]["matched"], ops[f"mpiio:MPI_File_{op}"]["mismatched"]) == (2, 1), ops


def test_what_ranks_that_share_a_process_cannot_do_is_an_error():
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "one-sided")
        r = mpirun(2, "replay", trace, "--root", tmp, "--map", "block", "--with", "filter,preset=workload")
        assert r.status == 2 and "its ranks would need a process each: want mpirun with as many" in r.err, r.err[-2000:]


def test_one_process_has_no_collective_calls():
    with Tmp() as tmp:
        trace = project(tmp, *[["Barrier cid='0'"]] * 3)
        r = feign("replay", trace, "--root", tmp, "--replayer", "mpi", env={"OMPI_MCA_plm": "isolated"}, timeout=60)
        assert r.status == 2 and "MPI_Barrier on WORLD{0-2}: its ranks would need a process each" in r.err, r.err


def test_a_layer_that_the_trace_lacks_is_said():
    with Tmp() as tmp:
        shipped = os.path.join(TOP, "examples", "git-clone.strace.gz")
        r = feign("replay", shipped, "--root", tmp, "--layer", "mpiio", "--json").json()
        assert "replayer mpi has nothing to do: it is for mpi, mpiio, and what is replayed has calls of posix" in r["notes"], r["notes"]


def test_hints_and_layers_are_one_option():
    with Tmp() as tmp:
        trace, made = recorded(tmp, "solver", 8, 64)
        out = os.path.join(tmp, "x.txt")
        r = feign("convert", "-q", trace, out, "--with", "mpi-hints,drop=cb_*,set=romio_ds_write=enable,collective=no")
        assert r.status == 0, r.err
        with open(out, encoding="utf-8") as f:
            text = f.read()
        assert 'info="romio_ds_write=enable"' in text and not re.search(r'info="[^"]*cb_nodes', text) and "MPI_File_write_all" not in text
        assert text.count("mpiio:MPI_File_write(") == 8
        refuses("convert", trace, out, "--with", "mpi-hints,set=cb_nodes", text='"cb_nodes": want KEY=VALUE')
        for how in (["--layer", "posix"], ["--replayer", "posix", "--replayer", "mpi,comm=order"]):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *how)
                assert os.path.getsize(root + made) == os.path.getsize(made)
                assert (report["ops"]["mpiio:MPI_File_write_all"]["replayed"] == 8) == (how[0] != "--layer")
        with Tmp() as root:  # a replayer that is there already, by its name
            assert replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--layer", "mpi,comm=order")["ops"]["mpiio:MPI_File_write_all"]["replayed"] == 8


def test_calls_that_become_collective_are_as_many_on_all_ranks():
    """A rank that makes more than others would wait for them for ever."""
    program = """
        #include <mpi.h>
        int main(int argc, char** argv) {
          char byte = 0;
          int rank;
          MPI_File alone, f;
          MPI_Init(&argc, &argv);
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          for (int round = 0; round < 2; ++round) {
            MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
            for (int i = 0; i < 3 + (round + 1) * rank %% %d; ++i) MPI_File_write_at(f, 4 * rank + i, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_write_at_all(f, 20 + rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_close(&f);
          }
          if (rank == 0) {
            MPI_File_open(MPI_COMM_SELF, "alone", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &alone);
            MPI_File_write(alone, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_close(&alone);
          }
          MPI_Finalize();
          return 0;
        }"""
    how = "--with", "filter,preset=workload", "--with", "mpi-hints,collective=yes"
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, program % 1)
        with Tmp() as root:
            report = replayed(2, trace, "--root", root, *how)
            assert report["ops"]["mpiio:MPI_File_write_at_all"]["matched"] == 16 and os.path.getsize(root + there + "/data") == 22, report["ops"]
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, program % 2)
        r = mpirun(2, "replay", trace, "--root", tmp, *how, "--patience", "5s")
        said = f"collective=yes: {there}/data: of reads and writes that would be collective rank 0 makes 4, rank 1 5: who makes more may wait for the others for ever"
        assert r.err.count(said) == 1, r.err


GIVES = r"""
#include <mpi.h>
#include <stdio.h>
int MPI_File_open(MPI_Comm comm, const char* name, int mode, MPI_Info given, MPI_File* file) {
  int count = 0, there, rank;
  char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
  MPI_Info used;
  const int error = PMPI_File_open(comm, name, mode, given, file);
  PMPI_Comm_rank(comm, &rank);
  if (error != MPI_SUCCESS || rank != 0) return error;
  PMPI_File_get_info(*file, &used);
  PMPI_Info_get_nkeys(used, &count);
  for (int i = 0; i < count; ++i) {
    PMPI_Info_get_nthkey(used, i, key);
    PMPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &there);
    fprintf(stderr, "hint %s=%s\n", key, value);
  }
  PMPI_Info_free(&used);
  return error;
}
"""


def test_changed_hints_are_those_that_mpi_works_by():
    """Collective buffering and data sieving off, collective calls made independent: MPI says that it was told so, and the file is the same."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "solver", 8, 64)
        library = os.path.join(tmp, "gives.so")
        if sanitized():
            raise Skip("a sanitizer wants to be loaded first")
        with open(library + ".c", "w", encoding="utf-8") as f:
            f.write(GIVES)
        subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, library + ".c"], check=True)
        # ROMIO does what these hints say; Open MPI's own component does not know them.
        romio = ["--mca", "io", "romio321"] if "io:romio321:" in subprocess.run(["ompi_info", "--parsable"], stdout=subprocess.PIPE, text=True, check=False).stdout else []
        off, no = "mpi-hints,drop=cb_*,set=romio_cb_write=disable,set=romio_ds_write=disable", {"romio_cb_write": "disable", "romio_ds_write": "disable"}
        for how, want, collective in ((None, {"cb_nodes": "2"}, 8), (off, no, 8), (off + ",collective=no", no, 0)):
            with Tmp() as root:
                launch = command(4, "replay", trace, "--root", root, "--json", "--require", "1", "--with", "filter,preset=workload", *(["--with", how] if how else []))
                at = launch.index("-np")
                r = Ran(subprocess.run([*launch[:at], *romio, "-x", "LD_PRELOAD=" + library, *launch[at:]], capture_output=True, env=QUIET, check=False))
                assert r.status == 0, r.err + r.out[-2000:]
                hints = dict(re.findall(r"^hint (\w+)=(.*)$", r.err, re.M))
                assert {k: v for k, v in hints.items() if k in ("cb_nodes", *no)} == want, (how, hints)
                ops = {name: r.json()["ops"].get("mpiio:MPI_File_" + name, {"matched": 0})["matched"] for name in ("write_all", "write")}
                assert ops == {"write_all": collective, "write": 8 - collective}, (how, ops)
                assert os.path.getsize(root + made) == os.path.getsize(made)


def test_the_rank_that_has_most_to_do_is_named():
    with Tmp() as tmp:
        for node, seconds in enumerate((0, 0.4, 0)):
            with open(os.path.join(tmp, f"t.{node}"), "w", encoding="utf-8") as f:
                f.write(f'COMPUTE({seconds})\nopen("/f", 577, 0644) = 3\nclose(3) = 0\n')
        r = mpirun(3, "replay", os.path.join(tmp, "t"), "--root", tmp, "--pace", "think", "--compute", "sleep")
        said = re.search(r"rank (\d+) has most to do itself \(I/O and pauses\): .*, (\d+) % more than the mean", r.out)
        assert r.status == 0 and said and said[1] == "1" and 0 < int(said[2]) <= 200, r.err + r.out


def test_what_threads_waited_for_others_is_nothing_that_their_rank_does_itself():
    """The threads that MPI starts do little else, and there are more of them in one rank than in another."""
    with Tmp() as tmp, Tmp() as root:
        trace, _ = recorded(tmp, "breadth", "collectives")
        report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--pace", "think", "--order", "stream")
        paused, waited = (sum(s[what] for s in report["streams"]) for what in ("pause_seconds", "wait_seconds"))
        ranks = {what: sum(r[what] for r in report["ranks"]) for what in ("pause_seconds", "wait_seconds")}
        assert ranks["pause_seconds"] < 0.7 * paused, (ranks, paused, waited)
        assert abs(ranks["pause_seconds"] + ranks["wait_seconds"] - paused - waited) < 0.001, (ranks, paused, waited)


# ---- dependencies across ranks -------------------------------------------------------------------

def test_without_mpirun_messages_order_the_posix_calls_of_all_ranks():
    """Who opens and reads what another rank made, with no other rule that would say so; inside one MPI_File_open path does."""
    for name, arguments, ops, rules in (("ring", (20, 5000), {"pread64": 80}, "mpi+process"),
                                        ("checkpoint", (10, 5000), {"pwrite64": 40}, "mpi+process+path")):
        with Tmp() as tmp:
            trace, made = recorded(tmp, name, *arguments)
            for seed in range(3):
                with Tmp() as root:
                    r = feign("replay", trace, "--root", root, "--json", "--require", "1", "--with",
                              "filter,preset=workload", "--with", "depend,rules=" + rules, "--with", f"jitter,max=300us,seed={seed}",
                              "--order", "stream", "--pace", "think", timeout=60)
                    assert r.status == 0, r.err + r.out[-3000:]
                    report = r.json()
                    assert all(report["ops"][op]["matched"] >= n for op, n in ops.items()), report["ops"]
                    assert os.path.getsize(root + made) == os.path.getsize(made)
                    assert any(w["rule"] == "mpi" and w["count"] > 0 for w in report["waits"]), report["waits"]


def test_a_barrier_needs_two_dependencies_a_rank():
    with Tmp() as tmp:
        trace = project(tmp, *[["Barrier cid='0'", "Barrier cid='0'"]] * 4)
        r = feign("info", "--dependencies", "--json", trace)
        assert r.status == 0, r.err
        kept = r.json()["dependencies"]["rules"]["mpi"]["kept"]
        assert 6 <= kept <= 2 * 2 * 4, kept


def relay(folder, nodes, rounds):
    """Each node in turn makes a file that the next one needs."""
    lines = [[] for _ in range(nodes)]
    for turn in range(rounds * nodes):
        me = turn % nodes
        if turn:
            lines[me] += [f"WAIT({(me - 1) % nodes})", f'open("/r/{turn - 1}", 0, 0) = 3', "read(3, 10) = 10", "close(3) = 0",
                          f'unlink("/r/{turn - 1}") = 0']
        lines[me] += [f'open("/r/{turn}", 577, 0644) = 3', "write(3, 10) = 10", "close(3) = 0"]
        if turn + 1 < rounds * nodes:
            lines[me] += [f"SIGNAL({(me + 1) % nodes})"]
    for n, text in enumerate(lines):
        with open(os.path.join(folder, f"relay.{n}"), "w", encoding="utf-8") as f:
            f.write("\n".join(text) + "\n")
    return os.path.join(folder, "relay")


def test_ranks_wait_for_each_other_where_the_trace_says_so():
    with Tmp() as tmp:
        trace = relay(tmp, 4, 25)
        native = os.path.join(tmp, "relay.feign")
        assert feign("convert", "-q", trace, native).status == 0
        for ranks, how, what in ((4, (), trace), (4, (), native), (2, ("--map", "cyclic"), native)):
            with Tmp() as root:
                report = replayed(ranks, what, "--root", root, *how)
                assert report["replayed"] == report["activities"] == 100 * 7 - 4, report
                assert [k for k in tree(root) if k.startswith("r/")] == ["r/99"]
                assert any(w["rule"] == "recorded" and w["count"] > 0 for w in report["waits"])
        # A replayer that names no layer serves all.
        assert replayed(2, native, "--root", tmp, "--map", "cyclic", "--replayer", "null")["replayed"] != 0


def test_who_waits_long_for_a_rank_sleeps_longer():
    """Threads that wait for another rank from beginning to end took as many processors as there were."""
    with Tmp() as tmp:
        made = 'open("/f", 577, 0644) = 3\nclose(3) = 0\n'
        for node, text in enumerate((f"COMPUTE(1.5)\n{made}SIGNAL(1)\n", f"WAIT(0)\n{made}")):
            with open(os.path.join(tmp, f"t.{node}"), "w", encoding="utf-8") as f:
                f.write(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
        report = replayed(2, os.path.join(tmp, "t"), "--root", tmp, "--pace", "think", "--compute", "sleep")
        assert report["waits"][0]["longest_seconds"] > 1, report["waits"]
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before < 20000


def test_depend_orders_ranks_of_a_trace_without_messages():
    with Tmp() as tmp:
        trace = relay(tmp, 3, 10)
        for n in range(3):
            path = f"{trace}.{n}"
            with open(path, encoding="utf-8") as f:
                text = [line for line in f if not line.startswith(("WAIT", "SIGNAL"))]
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(text)
        with Tmp() as root:
            r = mpirun(3, "replay", trace, "--provider", "tracetext", "--root", root, "--order", "depend", "--json")
            assert r.status == 0, r.err
            assert len(r.json()["ranks"]) == 3


# Rank 1 gets no thread after the first 24, and two that waited to begin go on late.
FEW_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int waited, made;
static int here(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank && rank[0] == '1';
}
long syscall(long number, ...) {
  long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall"), a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const long result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (here() && number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && __sync_fetch_and_add(&waited, 1) < 2) sleep(4);
  return result;
}
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*f)(void *), void *with) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
  return here() && __sync_fetch_and_add(&made, 1) >= 24 ? EAGAIN : real(thread, how, f, with);
}
"""


def test_a_rank_that_gets_no_more_threads_ends_all_and_is_named():
    """Those that it has may end late: it waits for them, and for none of those that never began."""
    with Tmp() as tmp:
        trace, library = os.path.join(tmp, "t.strace"), os.path.join(tmp, "few.so")
        clone = "clone(child_stack=0x7f00000000, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM)"
        with open(trace, "w", encoding="utf-8") as f:
            for process in 100, 200:
                f.writelines(f"{process} 1700000000.{process}{i:03} {clone} = {process * 10 + i} <0.000001>\n" for i in range(60))
            for process in 100, 200:
                f.writelines(f'{process * 10 + i} 1700000001.{process}{i:03} mkdir("/{process}.{i}", 0777) = 0 <0.000001>\n' for i in range(60))
        if shutil.which("mpicc") is None or sanitized():
            raise Skip("there is no mpicc, or a sanitizer that wants to be loaded first")
        with open(library + ".c", "w", encoding="utf-8") as f:
            f.write(FEW_THREADS)
        subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, library + ".c", "-ldl"], check=True)
        launch = command(2, "replay", trace, "--root", tmp)
        at = launch.index("-np")
        r = Ran(subprocess.run([*launch[:at], "-x", "LD_PRELOAD=" + library, *launch[at:]], capture_output=True, env=QUIET, check=False))
        assert r.status == 2 and re.search(r"rank 1 \(.*\): start thread \d+ of 61: ", r.err), r.err
        assert "ENDED" in r.out, r.out


OWN_CALLS = ("MPI_Comm_dup", "MPI_Send", "MPI_Improbe", "MPI_Win_allocate_shared", "MPI_Barrier", "MPI_Allreduce", "MPI_Comm_create_group",
             "MPI_Win_free", "MPI_Finalize")
# Their arguments are numbers and addresses: handed on as they are, however many.
FAILING = """
#include <stdlib.h>
#include <string.h>
static int fails(const char *name) {
  static int made;
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *which = getenv("FAILING");
  return rank && rank[0] == '1' && which && strcmp(which, name) == 0 && __sync_fetch_and_add(&made, 1) == 0;
}
#define FAILING(name) long P##name(long, long, long, long, long, long, long, long, long, long); \\
  long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) { return fails(#name) ? 16 : P##name(a, b, c, d, e, f, g, h, i, j); }
"""


def test_a_call_of_mpi_that_the_replay_needs_and_that_fails_ends_all_and_is_named():
    """The first of each, on one of two ranks; the other one may be waiting for it."""
    with Tmp() as tmp:
        trace, library = project(tmp, ["Barrier cid='0'"], ["Barrier cid='0'"]), os.path.join(tmp, "failing.so")
        if shutil.which("mpicc") is None or sanitized():
            raise Skip("there is no mpicc, or a sanitizer that wants to be loaded first")
        with open(library + ".c", "w", encoding="utf-8") as f:
            f.write(FAILING + "".join(f"FAILING({name})\n" for name in OWN_CALLS))
        subprocess.run(["mpicc", "-w", "-shared", "-fPIC", "-o", library, library + ".c"], check=True)
        launch = command(2, "replay", trace, "--root", tmp, timeout=30)
        at = launch.index("-np")
        for name in OWN_CALLS:
            preload = ["-x", "LD_PRELOAD=" + library, "-x", "FAILING=" + name]
            r = Ran(subprocess.run([*launch[:at], *preload, *launch[at:]], capture_output=True, env=QUIET, check=False))
            said = re.search(rf"^feign: mpi: rank 1: {name}\(\), which the replay needs: (\S.*)$", r.err, re.M)
            assert r.status == 2 and said and "MPI_ERR_OTHER" in said.group(1), (name, r.status, r.err)


def test_where_ranks_can_share_no_memory_they_send_messages():
    """As Open MPI may be set up: none of them gets any."""
    with Tmp() as tmp:
        trace = project(tmp, ["Barrier cid='0'"], ["Barrier cid='0'"])
        launch = command(2, "replay", trace, "--root", tmp, "--json", timeout=60)
        launch[launch.index("-np"):launch.index("-np")] = ["--mca", "osc", "^sm"]
        r = Ran(subprocess.run(launch, capture_output=True, env=QUIET, check=False))
        assert r.status == 0 and json.loads(r.out)["matched"] == 2, r


def test_who_is_left_in_a_call_has_heard_of_other_threads_before_they_call_mpi():
    """What it does without Open MPI's locks is over when the thread that reports comes."""
    with Tmp() as tmp:
        trace, library = project(tmp, ["Barrier cid='0'"], ["Barrier cid='0'", recv(0, 1077)]), os.path.join(tmp, "left.so")
        if shutil.which("mpicc") is None or sanitized():
            raise Skip("there is no mpicc, or a sanitizer that wants to be loaded first")
        with open(library + ".c", "w", encoding="utf-8") as f:
            f.write("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static volatile int left, heard;
int MPI_Recv(void *in, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s) {
  if (tag != 1077) return PMPI_Recv(in, n, t, from, tag, c, s);
  const volatile _Bool *const several = dlsym(RTLD_DEFAULT, "opal_uses_threads");
  if (several == NULL || *several) fprintf(stderr, "locks\\n");
  for (left = 1;; usleep(10000)) heard |= several == NULL || *several;
}
static void look(void) {
  if (left) fprintf(stderr, heard ? "heard\\n" : "not heard\\n");
  left = 0;
}
int MPI_Send(const void *out, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  look();
  return PMPI_Send(out, n, t, to, tag, c);
}
int MPI_Isend(const void *out, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
  look();
  return PMPI_Isend(out, n, t, to, tag, c, r);
}
""")
        subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, library + ".c", "-ldl"], check=True)
        launch = command(2, "replay", trace, "--root", tmp, "--patience", "1s")
        at = launch.index("-np")
        r = Ran(subprocess.run([*launch[:at], "-x", "LD_PRELOAD=" + library, *launch[at:]], capture_output=True, env=QUIET, check=False))
        if re.search("^locks$", r.err, re.M):
            raise Skip("this Open MPI takes its locks always")
        assert r.status == 2 and re.findall("^(?:not )?heard$", r.err, re.M) == ["heard"], r.err


def test_the_death_of_a_rank_ends_all():
    with Tmp() as tmp:
        trace = project(tmp, *[["Barrier cid='0'"] * 30] * 3)
        process = subprocess.Popen(command(3, "replay", trace, "--root", tmp, "--pace", "think", timeout=90), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=QUIET, start_new_session=True)
        try:
            pids = []
            for _ in range(300):
                time.sleep(0.1)
                pids = [int(p.split("/")[2]) for p in glob.glob("/proc/[0-9]*/environ") if rank_of(p) == (trace, "1")]
                if pids and threads(pids[0]) > 3:
                    break
            assert pids, "no rank 1"
            time.sleep(1)
            os.kill(pids[0], signal.SIGKILL)
            out, err = process.communicate(timeout=40)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode != 0
        assert re.search(r"rank 1\b", err.decode() + out.decode()), err


def rank_of(environ):
    """(trace, rank) of a process that replays, by its environment."""
    try:
        with open(environ, "rb") as f:
            variables = dict(v.split("=", 1) for v in f.read().decode("utf-8", "replace").split("\0") if "=" in v)
        with open(environ.replace("environ", "cmdline"), "rb") as f:
            arguments = f.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    traces = [a for a in arguments if a.endswith(".proj")]
    return (traces[0] if traces else None, variables.get("OMPI_COMM_WORLD_RANK"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task")) if os.path.isdir(f"/proc/{pid}/task") else 0


if __name__ == "__main__":
    main(globals())
