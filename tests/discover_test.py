#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`feign discover`: programs that synchronise in silence, each with its own log of who waited for whom."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import silent
from harness import FEIGN, Skip, Tmp, feign, main, refuses
from recording import compile_text


def discover(out, *command, options=()):
    if str(command[0]).endswith("silent"):
        options = [*silent.leave_out(command[2]), *options]
    r = feign("discover", "-o", out, *options, "--", *command, timeout=400)
    assert r.status == 0, r.err
    return silent.load(out)


def setup(tmp):
    return silent.build(tmp), silent.data(os.path.join(tmp, "d"))


def check(folder, report, kept=True):
    missed, wrong, least = silent.compare(folder, report)
    assert not missed, f"missed {missed[:5]}"
    assert not wrong, f"false {wrong[:5]}"
    if kept:
        assert report["dependencies_kept"] <= 1.2 * least, (report["dependencies_kept"], least)
    assert not os.path.exists(os.path.join(folder, "broken"))


def test_at_period_1_what_is_found_is_what_is_true():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        for mode in silent.MODES:
            report = discover(os.path.join(tmp, mode), program, mode, folder, "nodes=3", "rounds=2")
            assert len(report["nodes"]) == 3 and report["runs"] == 4, report
            check(folder, report)


def test_threads_are_nodes_too():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "o"), program, "pseudosync", folder, "nodes=3", "rounds=2", "as=threads")
        assert [n["name"] for n in report["nodes"]] == ["main#1", "main#2", "main#3"]
        check(folder, report)


def test_a_node_may_be_a_process_with_all_its_threads():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "o"), program, "pseudo", folder, "nodes=1", "as=threads", options=["--per", "process"])
        assert [n["name"] for n in report["nodes"]] == ["main"]


THREADS = r"""
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
static atomic_int done;
static void *writes(void *name) {
  int fd = open(name, O_CREAT | O_WRONLY, 0644);
  for (int i = 0; i < 8; ++i) if (write(fd, "x", 1) != 1) return name;
  close(fd);
  ++done;
  return 0;
}
int main(int argc, char **argv) {
  pthread_t thread;
  char name[4096];
  snprintf(name, sizeof name, "%s/file", argv[1]);
  pthread_create(&thread, 0, writes, name);
  while (!done) poll(0, 0, 1);
  pthread_join(thread, 0);
  return argc != 2;
}
"""


def test_a_thread_goes_on_while_its_process_is_held():
    with Tmp() as tmp:
        source, program, out = (os.path.join(tmp, name) for name in ("threads.c", "threads", "o"))
        with open(source, "w", encoding="ascii") as f:
            f.write(THREADS)
        try:
            subprocess.run(["cc", "-pthread", "-o", program, source], check=True)
        except OSError:
            raise Skip("no C compiler") from None
        r = feign("discover", "-o", out, "--per", "process", "--only", tmp, "--timeout", "60s", "--", program, tmp, timeout=400)
        assert r.status == 0, r.err
        report = silent.load(out)
        assert [n["calls"] for n in report["nodes"]] == [10] and report["delays"] == 10, report


def test_nodes_that_sleep_while_they_wait():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "o"), program, "halo", folder, "nodes=4", "rounds=1", "wait=nap")
        check(folder, report)


def test_a_longer_period_finds_less_and_nothing_false():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "o"), program, "pseudosync", folder, "nodes=3", "rounds=4", options=["--sample-period", 4])
        _, wrong, _ = silent.compare(folder, report)
        assert not wrong, wrong
        assert report["delays"] <= 3 * 2
        assert any("latest" in d for d in report["dependencies"])


def test_adaptive_finds_the_same_with_fewer_delays():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        for mode, rounds in ("pseudosync", 24), ("fitness", 24):
            report = discover(os.path.join(tmp, mode), program, mode, folder, "nodes=3", f"rounds={rounds}", "compute=50",
                              options=["--adaptive"])
            check(folder, report, kept=mode == "fitness")
            assert report["delays"] < sum(n["calls"] for n in report["nodes"]) * 2 / 3, report["delays"]
            # Who waits for another's last call was late by all of it in every run: it is looked for just there.
            assert mode != "fitness" or report["delays"] <= 24, report["delays"]


def test_patterns_have_names_and_say_what_was_checked():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        for mode, pattern in ("pseudosync", "barrier"), ("fitness", "ring"), ("masterworker", "master/worker"), ("halo", "lock-step"):
            report = discover(os.path.join(tmp, mode), program, mode, folder, "nodes=3", "rounds=24", "compute=50", options=["--adaptive"])
            found = {p["pattern"]: p for p in report["patterns"]}
            assert sorted(found[pattern]["nodes"]) == [0, 1, 2], found
            assert found[pattern]["checked"] > 0, found
            if mode == "pseudosync":
                assert found[pattern]["checked"] + found[pattern]["assumed"] == 24 and found[pattern]["assumed"] > 0, found


def test_one_barrier_is_found_where_the_first_node_showed_it():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "o"), program, "pseudo", folder, "nodes=3", "rounds=60", "compute=50", options=["--adaptive"])
        check(folder, report)
        assert all(n["held_at"] <= 8 for n in report["nodes"][1:]), report["nodes"]


def test_an_accuracy_that_is_enough_ends_the_search():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        reports = [discover(os.path.join(tmp, share), program, "halo", folder, "nodes=3", "rounds=40", "compute=50",
                            options=["--adaptive", "--accuracy", share]) for share in ("100%", "0")]
        assert reports[1]["runs"] == 4 < reports[0]["runs"], reports
        check(folder, reports[0], kept=False)
        assert not silent.compare(folder, reports[1])[1]
        refuses("discover", "-o", os.path.join(tmp, "o"), "--accuracy", "101", "--", "true", text="--accuracy 101: want a percentage")
        for option in ("--accuracy", "90%"), ("--budget", "5m"):
            refuses("discover", "-o", os.path.join(tmp, "o"), *option, "--", "true", text=" ".join(option) + ": without --adaptive")
        for option in ("--repeat", "2"), ("--sample-period", "10"):
            refuses("discover", "-o", os.path.join(tmp, "o"), "--adaptive", *option, "--", "true", text=" ".join(option) + ": with --adaptive")


def test_budget_ends_the_search_and_says_so():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        r = feign("discover", "-o", os.path.join(tmp, "o"), "--adaptive", "--budget", "1ms", *silent.leave_out(folder), "--", program, "pipeline", folder,
                  "nodes=2", "rounds=8")
        assert r.status == 0, r.err
        assert "--budget" in r.out, r.out
        _, wrong, _ = silent.compare(folder, silent.load(os.path.join(tmp, "o")))
        assert not wrong, wrong


def test_only_some_nodes_are_slowed_down():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "a"), program, "pseudosync", folder, "rounds=1", options=["--nodes", "1,3"])
        assert {d["on_node"] for d in report["dependencies"]} == {1, 3}
        report = discover(os.path.join(tmp, "b"), program, "pseudosync", folder, "rounds=1", options=["--nodes", 2])
        assert {d["on_node"] for d in report["dependencies"]} == {0, 2} and report["runs"] == 3
        for bad, text in ("9", "want 1 to 4"), ("0,7", "no node has number 7"), ("2-7", "no node has number 7"), ("x", "want a number of nodes"), ("3-1", "no number or range"):
            refuses("discover", "-o", os.path.join(tmp, "c"), "--nodes", bad, *silent.leave_out(folder), "--", program, "pseudo", folder,
                    text=text)


def test_no_true_order_is_broken_by_a_replay():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        out, root, log = os.path.join(tmp, "o"), os.path.join(tmp, "root"), os.path.join(tmp, "log")
        report = discover(out, program, "pseudosync", folder, "nodes=3", "rounds=4", "compute=100")
        for seed in range(10):
            subprocess.run(["rm", "-rf", root], check=True)
            os.mkdir(root)
            r = feign("replay", os.path.join(out, "trace.feign"), "--root", root, "--order", "stream", "--pace", "think",
                      "--with", f"jitter,max=1ms,seed={seed}", "--activities", log, "-q")
            assert r.status == 0, r.err
            assert not silent.broken(log, silent.truth(folder, report))


def test_the_trace_replays_and_random_delays_break_no_order():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        out, root = os.path.join(tmp, "o"), os.path.join(tmp, "root")
        discover(out, program, "pipeline", folder, "nodes=3", "rounds=3", "compute=100")
        trace = os.path.join(out, "trace.feign")
        os.mkdir(root)

        def replay(source, seed):
            subprocess.run(["rm", "-rf", root], check=True)
            os.mkdir(root)
            return feign("replay", source, "--root", root, "--order", "stream", "--pace", "think", "--with", f"jitter,max=1ms,seed={seed}",
                         "--require", "1", "-q").status

        assert [replay(trace, seed) for seed in range(12)] == [0] * 12
        # Without what was found it is right by chance only.
        for path in glob.glob(os.path.join(out, "trace.tracetext.*")):
            with open(path, encoding="utf-8") as f:
                lines = [line for line in f if not re.match(r"WAIT|SIGNAL", line)]
            with open(os.path.join(tmp, "bare" + path[path.rindex("."):]), "w", encoding="utf-8") as f:
                f.writelines(lines)
        assert 1 in [replay(os.path.join(tmp, "bare"), seed) for seed in range(12)]


STARTS_OTHERS = """
import subprocess, sys
d = sys.argv[1] + "/"
open(d + "a", "w").write("x" * 100)
with open(d + "out", "w") as f:
    subprocess.run(["cat", d + "a"], stdout=f, check=True)
subprocess.run(["cp", d + "out", d + "b"], check=True)
open(d + "b").read()
"""


def test_a_program_that_starts_others_is_their_nodes_and_its_own():
    with Tmp() as tmp:
        out, root = os.path.join(tmp, "o"), os.path.join(tmp, "root")
        for name in "d", "root":
            os.mkdir(os.path.join(tmp, name))
        folder = os.path.join(tmp, "d")
        report = discover(out, os.path.realpath(sys.executable), "-S", "-c", STARTS_OTHERS, folder,
                          options=["--only", folder, "--before", f"rm -f {folder}/*"])
        assert len(report["nodes"]) == 3, report["nodes"]
        waits = {(d["node"], d["on_node"]) for d in report["dependencies"]}
        assert waits >= {(1, 0), (0, 1), (2, 0), (0, 2)}, waits
        r = feign("replay", os.path.join(out, "trace.feign"), "--root", root, "--order", "stream", "--pace", "think", "--require", "1")
        assert r.status == 0, r.out + r.err


MPI = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, token = 0, size;
  char path[4200], block[4096] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(path, sizeof path, "%s/out.%d", argv[1], rank);
#ifdef WAITS
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank > 0) MPI_Irecv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
#else
  if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(fd, block, sizeof block) != sizeof block) return 1;
  if (rank + 1 < size) MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
  close(fd);
  return MPI_Finalize();
}
"""


def test_ranks_of_an_mpi_program():
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        raise Skip("mpicc and mpirun are not there")
    for call in "MPI_Recv", "MPI_Wait":
        with Tmp() as tmp:
            with open(os.path.join(tmp, "ring.c"), "w", encoding="ascii") as f:
                f.write(MPI)
            subprocess.run(["mpicc", *(["-DWAITS"] if call == "MPI_Wait" else []), "-o", os.path.join(tmp, "ring"), os.path.join(tmp, "ring.c")],
                           check=True)
            mpirun = ["mpirun", "--oversubscribe", "-np", "3"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
            report = discover(os.path.join(tmp, "o"), *mpirun, os.path.join(tmp, "ring"), tmp)
            assert [n["name"] for n in report["nodes"]] == ["rank:0", "rank:1", "rank:2"]
            assert [n["calls"] for n in report["nodes"]] == [3, 3, 3]
            assert silent.found(report) == {(1, 0, 0, 1), (2, 0, 0, 1), (2, 0, 1, 1)}, silent.found(report)
            assert report["dependencies_kept"] == 2
            assert {(d["stuck_in"], d["shown_by"]) for d in report["dependencies"]} == {(call, call)}, report["dependencies"]


def test_raw_traces_are_those_that_the_provider_merges():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        out = os.path.join(tmp, "o")
        report = discover(out, program, "pseudosync", folder, "nodes=2", "rounds=2")
        raw = sorted(glob.glob(os.path.join(out, "raw", "*")))
        assert [os.path.basename(p) for p in raw] == ["trace.0.0", "trace.0.1", "trace.1.0", "trace.1.1"]
        r = feign("convert", *raw, os.path.join(tmp, "again.tracetext"))
        assert r.status == 0, r.err
        waits = 0
        for path in glob.glob(os.path.join(tmp, "again.tracetext.*")):
            with open(path, encoding="utf-8") as f:
                waits += f.read().count("WAIT(")
        assert waits == report["dependencies_found"], (waits, report)


def test_questions_to_what_is_no_device_do_not_count():
    """isatty() of each file that is opened, as interpreters ask; and what a connection brings needs no delay."""
    program = (sys.executable, "-S", os.path.join(os.path.dirname(os.path.abspath(__file__)), "record", "connections.py"))
    with Tmp() as tmp:
        for kind in ("unix", "tcp", "mapped"):
            for nodes, means in (("all", "throttling+shown"), ("none", "shown")):
                folder, out = os.path.join(tmp, kind + nodes), os.path.join(tmp, kind + nodes + ".out")
                os.mkdir(folder)
                options = ["--nodes", nodes] if nodes == "none" else ["--before", "rm -f name wish question answer last"]
                r = feign("discover", "-o", out, "--only", ".", *options, "--", *program, kind, cwd=folder)
                assert r.status == 0, r.err
                with open(os.path.join(out, "dependencies"), encoding="utf-8") as f:
                    found = [line.split() for line in f if not line.startswith("#")]
                assert [line[6] for line in found] == [means] * 4 and sum("accept4" in line for line in found) == 1, found


def test_what_differs_from_run_to_run_is_an_error_that_shows_it():
    with Tmp() as tmp:
        script = f"echo x > {tmp}/f.$$"
        r = refuses("discover", "-o", os.path.join(tmp, "o"), "--", "sh", "-c", script, text=r"non-deterministic application: call \d+ of node main")
        assert r.err.count(f"{tmp}/f.") == 2 and "--tolerate" in r.err, r.err
        assert not glob.glob(os.path.join(tmp, "o*"))
        r = feign("discover", "-o", os.path.join(tmp, "o"), "--tolerate", "--", "sh", "-c", script)
        assert r.status == 0, r.err
        script = f"test -e {tmp}/g && echo more >> {tmp}/g; echo x > {tmp}/g"
        r = refuses("discover", "-o", os.path.join(tmp, "p"), "--tolerate", "--", "sh", "-c", script, text="non-deterministic application: call")
        assert "--tolerate" not in r.err, r.err


def test_before_puts_things_back():
    with Tmp() as tmp:
        new = f"set -C; echo x > {tmp}/new"
        refuses("discover", "-o", os.path.join(tmp, "o"), "--", "sh", "-c", new + "; true", text="non-deterministic")
        os.unlink(os.path.join(tmp, "new"))
        r = feign("discover", "-o", os.path.join(tmp, "o"), "--before", f"rm -f {tmp}/new", "--", "sh", "-c", new)
        assert r.status == 0, r.err
        refuses("discover", "-o", os.path.join(tmp, "p"), "--before", "exit 3", "--", "true", text="--before exit 3: ended with status 3")


def test_a_run_that_dies_is_an_error_that_says_where():
    with Tmp() as tmp:
        with open(os.path.join(tmp, "dies.sh"), "w", encoding="ascii") as f:
            f.write("n=$(cat $1/n)\necho $((n + 1)) > $1/n\necho x > $1/made\nif [ $n = $2 ]; then eval $3; fi\n")
        for at, how, text in ((1, "kill -SEGV $$", r"run with main throttled: .*status 139 .*Segmentation.*killed: main: .*after \d+ calls"),
                              (1, "exit 3", "run with main throttled: .*status 3, and with 0 when nobody was"),
                              (0, "kill -ABRT $$", r"ended with status 134 .*killed: main: ")):
            with open(os.path.join(tmp, "n"), "w", encoding="ascii") as f:
                f.write("0\n")
            refuses("discover", "-o", os.path.join(tmp, "o"), "--tolerate", "--", "sh", os.path.join(tmp, "dies.sh"), tmp, at, how, text=text)
            assert not glob.glob(os.path.join(tmp, "o*"))


def test_a_run_without_end_is_ended_and_says_where_everybody_was():
    with Tmp() as tmp:
        os.mkfifo(os.path.join(tmp, "fifo"))
        begin = time.monotonic()
        refuses("discover", "-o", os.path.join(tmp, "o"), "--timeout", "500ms", "--", "sh", "-c", f"(echo > {tmp}/fifo) & wait",
                text=r"did not end within 500 ms \(--timeout\).*main: in .*main/1: in open")
        assert time.monotonic() - begin < 20
        assert not glob.glob(os.path.join(tmp, "o*"))


def test_a_delay_has_a_bound():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        report = discover(os.path.join(tmp, "o"), program, "pseudosync", folder, "nodes=2", "rounds=1", options=["--max-delay", "1ms"])
        assert report["delays_cut_short"] > 0 and report["delays"] == 0
        assert report["dependencies"] == []


def running(word):
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if word.encode() in words and not words[0].endswith(b"feign"):
                out.append(pid)
        except OSError:
            pass
    return out


def test_ctrl_c_leaves_nothing_behind():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        p = begin(program, tmp, folder)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=30)[1].decode()
        assert p.returncode == 2 and "interrupted by signal 2" in err, err
        assert running(folder) == []
        assert not glob.glob(os.path.join(tmp, "o*"))


def begin(program, tmp, folder, *options):
    """discover in the middle of a run that takes long."""
    p = subprocess.Popen([FEIGN, "discover", *options, "-o", os.path.join(tmp, "o"), "--", program, "pseudosync", folder, "rounds=900"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while not running(folder) and time.monotonic() < end:
        time.sleep(0.01)
    assert running(folder)
    return p


def nothing_is_left(tmp, folder):
    end = time.monotonic() + 30
    while (running(folder) or glob.glob(os.path.join(tmp, "o*"))) and time.monotonic() < end:
        time.sleep(0.05)
    return running(folder) == [] and not glob.glob(os.path.join(tmp, "o*"))


def test_killed_it_leaves_nothing_behind():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        with begin(program, tmp, folder) as p:
            p.kill()
        assert nothing_is_left(tmp, folder)


def test_who_presses_ctrl_c_twice_leaves_nothing_either():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        with begin(program, tmp, folder) as p:
            for _ in range(3):
                p.send_signal(signal.SIGINT)
                time.sleep(0.02)
        assert p.returncode == 2
        assert nothing_is_left(tmp, folder)


def test_what_a_killed_one_left_the_next_takes_away():
    with Tmp() as tmp:
        program, folder = setup(tmp)
        with begin(program, tmp, folder) as p:
            with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
                worker = int(f.read().split()[0])
            os.kill(worker, signal.SIGKILL)
            assert p.wait() == 2 and b"was killed" in p.stderr.read()
        assert running(folder) == []
        left = glob.glob(os.path.join(tmp, "o.part.*"))
        assert len(left) == 1
        mine = os.path.join(tmp, "o.part.mine00")   # no folder of discover's
        os.mkdir(mine)
        discover(os.path.join(tmp, "o"), program, "pseudo", folder, "nodes=2", "rounds=1")
        assert glob.glob(os.path.join(tmp, "o*")) in ([os.path.join(tmp, "o"), mine], [mine, os.path.join(tmp, "o")])
        assert "owner" not in os.listdir(os.path.join(tmp, "o"))


def test_bad_commands():
    with Tmp() as tmp:
        out = os.path.join(tmp, "o")
        refuses("discover", "-o", out, "--", "/no/such/program", text="/no/such/program: No such file")
        refuses("discover", "-o", out, "--", "sh", "-c", "exit 4", text="ended with status 4")
        refuses("discover", "-o", out, "--", "true", text="no calls on files")
        refuses("discover", "-o", out, text="want -- COMMAND")
        refuses("discover", "--", "true", text="output")
        refuses("discover", "-o", tmp + "/no/such/o", "--", "true", text="No such file")
        for option, value, text in (("--nodes", ",", "want a number of nodes"), ("-o", "", "--output: want DIR"), ("--only", "", "--only: want DIR"),
                                    ("--exclude", "/" + "x" * 2000, "want a directory of at most")):
            words = ["-o", out, option, value] if option != "-o" else ["-o", ""]
            refuses("discover", *words, "--", "sh", "-c", f"echo x > {tmp}/f", text=text)
        refuses("discover", "-o", out, *["--only", "d"] * 9, "--", "true", text="--only: given 9 times, want at most 8")
        refuses("discover", "-o", out, "--nodes", "first", "--", "sh", "-c", f"echo x > {tmp}/ran", text="--nodes first: want a number of nodes")
        assert not os.path.exists(os.path.join(tmp, "ran")), "what is wrong by itself costs no run"
        refuses("discover", "-o", out, "--timeout", "soon", "--", "true", text="--timeout soon: want a time")
        assert not os.path.exists(out)
        os.mkdir(out)
        with open(os.path.join(out, "mine"), "w", encoding="ascii"):
            pass
        refuses("discover", "-o", out, "--", "true", text="is there already")
        assert os.listdir(out) == ["mine"]


STRANGER = """#!/usr/bin/env python3
import re, socket, sys
addresses, port = re.search(r"discover-post (\\S+) (\\d+) ", sys.argv[-1]).groups()
silent = socket.create_connection((addresses.split(",")[-1], int(port)))
for hello in b"no words", b"[]", b"{}", b'{"secret": 1}', b'{"secret": "wrong", "host": 1}':
    with socket.create_connection((addresses.split(",")[-1], int(port))) as s:
        s.sendall(hello + b"\\n")
        s.recv(1)
"""


def test_a_stranger_who_comes_to_its_port_ends_nothing():
    with Tmp() as tmp:
        reach = os.path.join(tmp, "reach")
        with open(reach, "w", encoding="ascii") as f:
            f.write(STRANGER)
        os.chmod(reach, 0o755)
        refuses("discover", "-o", os.path.join(tmp, "o"), "--hosts", "far", "--reach", reach, "--", "true", text="host far: .* ended before a post was there")


STREAMS = r"""
#include <stdio.h>
int main(int argc, char **argv) {
  FILE *f = fopen(argv[1], "w");
  return argc != 2 || fputs("by a stream", f) < 0 || fclose(f) != 0;
}
"""


def test_calls_inside_libc_are_seen_too():
    with Tmp() as tmp:
        source, out = os.path.join(tmp, "streams.c"), os.path.join(tmp, "d")
        with open(source, "w", encoding="ascii") as f:
            f.write(STREAMS)
        os.mkdir(out)
        try:
            subprocess.run(["cc", "-o", os.path.join(tmp, "streams"), source], check=True)
        except OSError as error:
            raise Skip(f"no C compiler: {error}") from None
        report = discover(os.path.join(tmp, "o"), os.path.join(tmp, "streams"), out + "/f", options=["--only", out])
        with open(glob.glob(os.path.join(tmp, "o", "trace.tracetext*"))[0], encoding="utf-8") as f:
            calls = re.findall(r"^(\w+)\(.*= (\d+)", f.read(), re.M)
        assert report["nodes"][0]["calls"] == len(calls) and ("write", "11") in calls, calls


OVER_ITSELF = r"""
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char name[4096];
  const int fd = open(argv[1], O_WRONLY);
  for (int i = 0; i < 3; ++i) {
    strcpy(name, argv[2]);
    if (readlink(name, name, sizeof name) != 6 || write(fd, "abc", 3) != 3) return 1;
  }
  return argc != 3;
}
"""


def test_a_link_that_is_read_to_where_its_name_is_counts():
    with Tmp() as tmp:
        out, program = os.path.join(tmp, "d"), os.path.join(tmp, "program")
        os.mkdir(out)
        os.symlink("target", out + "/link")
        compile_text(OVER_ITSELF, program)
        with open(out + "/f", "w", encoding="ascii"):
            pass
        report = discover(os.path.join(tmp, "o"), program, out + "/f", out + "/link", options=["--only", out])
        assert [n["calls"] for n in report["nodes"]] == [7], report["nodes"]


def test_calls_can_be_left_out_by_directory():
    with Tmp() as tmp:
        os.makedirs(os.path.join(tmp, "a"))
        os.makedirs(os.path.join(tmp, "b"))
        script = f"echo x > {tmp}/a/f; echo y > {tmp}/b/f"
        for n, (option, there, gone) in enumerate([("--only", "/a/", "/b/"), ("--exclude", "/b/", "/a/")]):
            out = os.path.join(tmp, str(n))
            discover(out, "sh", "-c", script, options=[option, os.path.join(tmp, "a")])
            with open(glob.glob(os.path.join(out, "trace.tracetext*"))[0], encoding="utf-8") as f:
                text = f.read()
            assert tmp + there in text and tmp + gone not in text, text
        here = os.getcwd()
        os.chdir(tmp)   # names from here on are such, too
        try:
            report = discover(os.path.join(tmp, "o"), "sh", "-c", script, options=["--only", "b/../a/"])
        finally:
            os.chdir(here)
        assert [n["calls"] for n in report["nodes"]] and all(n["calls"] < 5 for n in report["nodes"]), report["nodes"]


main(globals())
