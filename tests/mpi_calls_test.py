#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Corners of MPI, recorded from programs of tests/apps on 4 ranks and replayed on 4: every call made, and as recorded."""
import ctypes
import json
import os
import re
import shutil
import struct
import subprocess

from harness import Skip, TOP, Tmp, feign, main
from mpi_test import QUIET, command, mpirun, recorded, recorded_where_it_works, repeats, replayed, replays_with


def calls(report, *names, layer="mpi"):
    """How many of these were made, none left out or come to otherwise."""
    ops = [report["ops"][f"{layer}:{name}"] for name in names]
    assert all(o["skipped"] == o["emulated"] == o["mismatched"] == 0 for o in ops), report["ops"]
    return [o["matched"] for o in ops]


def breadth(part, *options, times=2):
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", part)
        for _ in repeats(times):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *options)
                skipped = [name for name, o in report["ops"].items() if name.startswith("mpi") and o["skipped"] and name not in ("mpi:MPI_Init", "mpi:MPI_Finalize")]
                assert not skipped, skipped
                if os.path.exists(made):
                    assert os.path.getsize(root + made) == os.path.getsize(made)
        return report


def text_of(trace):
    out = trace + ".txt"
    assert feign("convert", "-q", trace, out).status == 0
    with open(out, encoding="utf-8") as f:
        return f.read()


def told(part):
    """The trace of it as text."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", part)
        return text_of(trace)


def test_one_sided_calls_by_fence_lock_and_post():
    report = breadth("one-sided")
    assert calls(report, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Get_accumulate", "MPI_Rput", "MPI_Rget") == \
        [6, 4, 12, 12, 12, 4, 4]
    assert calls(report, "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait", "MPI_Win_lock") == [2, 2, 2, 2, 24]


def test_windows_to_which_memory_is_attached():
    assert calls(breadth("dynamic"), "MPI_Put", "MPI_Fetch_and_op", "MPI_Accumulate", "MPI_Rget") == [8, 4, 4, 4]


def test_windows_of_communicators_without_common_ranks():
    """Open MPI names the memory of those alike that are made at the same time."""
    assert calls(breadth("windows-of-halves"), "MPI_Win_create", "MPI_Win_free") == [4 * 200, 4 * 201]


def test_types_by_name_and_without_one_have_lengths_that_all_agree_on():
    """A type whose length the replay does not know hung it: the root of a scatter sent nothing."""
    assert calls(breadth("named"), "MPI_Scatterv", "MPI_Iscatterv", "MPI_Alltoallv") == [240, 240, 60]
    assert calls(breadth("untold"), "MPI_Scatterv", "MPI_Alltoallv") == [16, 4]


def test_wildcards_probes_and_persistent_requests():
    report = breadth("wildcards", times=5)
    assert calls(report, "MPI_Irecv", "MPI_Mprobe", "MPI_Mrecv", "MPI_Imrecv", "MPI_Startall") == [30, 3, 3, 3, 20]


def test_persistent_requests_are_started_again_without_messages():
    """Their second start and each later one was left out, with the note that nothing had made them."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "wildcards")
        report = replayed(4, trace, "--root", tmp, "--with", "filter,preset=workload", "--replayer", "posix", "--replayer", "mpi,comm=none")
        assert report["ops"]["mpi:MPI_Startall"]["matched"] == 20 and not [s for s in report["skips"] if "Start" in s["op"]], report["skips"]


def test_without_messages_ranks_come_to_a_file_in_the_order_that_those_gave():
    """Messages that are not made left ranks without any order: who read what another one had written came too early."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, """
            #include <fcntl.h>
            #include <mpi.h>
            #include <unistd.h>
            int main(int argc, char **argv) {
              int rank;
              char bytes[1000] = "";
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_Barrier(MPI_COMM_WORLD);
              if (rank == 0)
                for (int i = 0; i <= 1000; ++i) {
                  int fd = open(i < 1000 ? "before" : "result", O_CREAT | O_WRONLY, 0644);
                  if (write(fd, bytes, 1000) != 1000 || close(fd) != 0) return 1;
                }
              MPI_Barrier(MPI_COMM_WORLD);
              if (rank == 1) {
                int fd = open("result", O_RDONLY);
                if (read(fd, bytes, 1000) != 1000 || close(fd) != 0) return 1;
              }
              MPI_Finalize();
              return 0;
            }
            """)
        plan = os.path.join(tmp, "plan.feign")
        assert feign("convert", trace, plan, "--with", "filter,preset=workload").status == 0
        for source, more in ((trace, ["--with", "filter,preset=workload"]), (plan, [])):
            with Tmp() as root:
                report = replayed(2, source, "--root", root, *more, "--pace", "afap", "--replayer", "posix", "--replayer", "mpi,comm=none")
                assert report["mismatched"] == 0 and os.path.getsize(f"{root}{there}/result") == 1000, report["mismatches"]


def test_without_messages_who_is_in_a_collective_call_on_a_file_is_waited_for_by_none_that_it_waits_for():
    """A flush of one rank came after a change of the size that another one had gone on to, in which all meet: both waited for ever."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 4, """
            #include <mpi.h>
            int main(void) {
              MPI_File file;
              MPI_Init(NULL, NULL);
              MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
              for (int i = 0; i < 50; ++i) {
                MPI_File_sync(file);
                MPI_File_set_size(file, 1000 + i);
              }
              MPI_File_close(&file);
              MPI_Finalize();
              return 0;
            }
            """)
        with Tmp() as root:
            report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--replayer", "posix", "--replayer", "mpi,comm=none",
                              "--patience", "10s")
            assert report["mismatched"] == 0 and calls(report, "MPI_File_sync", "MPI_File_set_size", layer="mpiio") == [200, 200], report["mismatches"]


def test_requests_are_as_many_as_they_are():
    """Each is waited for, and each wildcard gets what it got, also where a list of them fills several records."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "many-requests")
        with Tmp() as root:
            report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload")
            waits = calls(report, "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome")
            assert waits[0] == 36008 and waits[1] == 36000 and waits[2] >= 8 and waits[3] == 24000, waits
        text = text_of(trace)
    numbers = [list(map(int, re.findall(r"\d+", line))) for line in re.findall(r"mpi:MPI_Waitall\(count=\d+, \S+?=\[(.*?)\]", text)]
    requests = sum(n >> 60 == 0 for line in numbers for n in line)
    assert requests == 4 * 6001 and sum(n >> 60 == 1 for line in numbers for n in line) == 4 * 3001, requests


def test_a_wildcard_receives_what_it_received():
    """Each way to wait tells whom it was, and the text of the trace shows it."""
    text = told("wildcards")
    got = set()
    for numbers in re.findall(r"mpi:MPI_(?:Wait|Test)\w*\((.*?)\) = 0", text):
        values = [int(n) for n in re.findall(r"\d{15,}", numbers)]
        got |= {(v >> 32 & 0xFFFFFFF, v & 0xFFFFFFFF) for v in values if v >> 60 == 1}
    assert {(r, 10 * r + i) for r in (1, 2, 3) for i in range(10)} <= got, got


def test_collectives_with_counts_and_non_blocking_ones():
    report = breadth("collectives")
    assert calls(report, "MPI_Allgatherv", "MPI_Iallgatherv", "MPI_Igatherv", "MPI_Iscatterv", "MPI_Alltoallv", "MPI_Ialltoallv",
                 "MPI_Ialltoallw", "MPI_Ireduce_scatter", "MPI_Ireduce_scatter_block", "MPI_Exscan") == [4] * 10


def test_one_process_without_messages_knows_how_long_types_are():
    """It asked MPI before it had begun it, which ends a process."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "collectives")
        for launch in (feign, lambda *args: mpirun(1, *args)):
            for comm, status, said in (("none", 0, ""), ("order", 0, ""), ("real", 2, "its ranks would need a process each")):
                r = launch("replay", trace, "--root", tmp, "--with", "filter,preset=workload", "--order", "depend", "--replayer", "posix",
                           "--replayer", f"mpi,comm={comm}")
                assert r.status == status and said in r.err, (comm, r.status, r.err)


def test_communicators_with_neighbours_and_of_two_groups():
    report = breadth("communicators")
    assert calls(report, "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv", "MPI_Ineighbor_alltoallv", "MPI_Ineighbor_allgatherv",
                 "MPI_Sendrecv", "MPI_Comm_split", "MPI_Comm_idup", "MPI_Bcast") == [4, 8, 4, 8, 4, 4, 4, 11]


def test_ranks_tags_and_keys_of_minus_one_are_told():
    text = told("communicators")
    assert sorted(re.findall(r"MPI_Comm_split\(.*?key=(\S+),", text)) == ["-1", "-2", "-3", "0"]


def test_communicators_that_nobody_uses():
    """A replay makes them before the start: 10,000 at most, and none that nobody uses."""
    assert calls(breadth("unused", times=1), "MPI_Comm_dup") == [40400]


def test_groups_that_send_unequal_amounts_and_what_is_received_in_place():
    for report in (breadth("two-groups", times=5), breadth("two-groups", "--replayer", "posix", "--replayer", "mpi,comm=order", times=1)):
        assert calls(report, "MPI_Allgather", "MPI_Iallgather", "MPI_Alltoall", "MPI_Ialltoall", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
                     "MPI_Comm_idup", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Ialltoallw", "MPI_Allgatherv", "MPI_Iallgatherv") == [4] * 12
    text = told("two-groups")
    lines = "".join(line for line in text.splitlines() if " rank 1 " in line)
    # What goes to each, in elements, or in bytes; then the same from each.
    assert re.findall(r"Alltoallv\(size=(\d+), sendcounts=\[(.*?)\]", lines) == [("40", "1 2 3 4 1 2 3 4")]
    assert re.findall(r"lltoallw\(size=(\d+), sendcounts=\[(.*?)\]", lines) == [("64", "4 16 12 32 4 16 12 32")] * 2
    assert re.findall(r"llgatherv\(size=(-?\d+), sendcount=0, recv_size=(\d+)", lines) == [("8", "40")] * 2
    assert re.findall(r"Reduce_scatter\(size=(\d+), recv_size=\d+, recvcounts=\[(.*?)\]", lines) == [("24", "1 2 3")]


def test_receives_are_cancelled_where_they_were():
    """In time or too late: the replay's messages may be earlier or later than the program's."""
    report = breadth("cancelled", "--patience", "5s")
    assert report["ops"]["mpi:MPI_Recv"]["matched"] == 1


def test_buffered_sends_wait_for_nobody():
    report = breadth("buffered", times=3)
    assert calls(report, "MPI_Bsend", "MPI_Ibsend", "MPI_Start", "MPI_Startall", "MPI_Buffer_detach") == [8, 8, 16, 8, 4]
    text = told("buffered")
    # One that starts again while its last message is under way is another one in Open MPI.
    started = re.findall(r"MPI_Start(?:all)?\(.*?request\w*=\[?(\d+)", text)
    assert len(started) == 24 and set(started) == {"1"}, started
    # Short sends are over at once, and then have one handle in Open MPI: each keeps a number of its own.
    lists = re.findall(r"MPI_Waitall\(count=3, array_of_requests=\[(\d+) (\d+) (\d+)\]", text)
    assert len(lists) == 4 and all(len(set(numbers)) == 3 for numbers in lists), lists


def test_error_handlers_are_called_as_often_as_without():
    """What the wrappers ask of MPI for themselves is no call that can go wrong: the program's handler would be told, in the middle of theirs."""
    launch = command(1)[:-1]
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    with Tmp() as tmp:
        program, source = os.path.join(tmp, "errors"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "errors.c")
        subprocess.run(["mpicc", "-w", "-o", program, source], check=True)
        alone = subprocess.run([*launch, program], cwd=tmp, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=QUIET, text=True)
        assert alone.returncode == 0 and alone.stdout.count("\n") == 12, alone.stdout
        r = feign("record", "--mpi", "-q", "-o", os.path.join(tmp, "t.feign"), "--", *launch, program, cwd=tmp, env={"FEIGN_TESTS": "1"})
        if "is not there" in r.err:
            raise Skip(r.err.strip())
        assert r.status == 0 and r.out == alone.stdout, (r.status, r.out, alone.stdout, r.err)


def test_what_functions_of_the_program_do_that_mpi_calls_is_theirs():
    """Of attributes (as MPI ends, too), operations, requests, and for errors: not what MPI does in its call, which a replay has done with that."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "callbacks")
        written = {name: os.path.getsize(name) for rank in range(4) for name in (f"{made}.log.{rank}", f"{made}.end.{rank}")}
        assert set(written.values()) == {105, 7}, written
        for layer in ((), ("--layer", "posix")):
            with Tmp() as root:
                ops = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *layer)["ops"]
                sizes = {name: os.path.getsize(root + name) for name in written}
                assert sizes == written, sizes
                assert ops["write"]["matched"] == 40, ops
                assert layer or ops["mpiio:MPI_File_close"]["matched"] == 4, ops
        # What MPI closes after that in MPI_Finalize is not what the function closed.
        with Tmp() as root:
            close = feign("replay", trace, "--root", root, "--order", "depend", "--with", "filter,preset=workload", "--json").json()["ops"]["close"]
            assert close["matched"] >= 4 and close["mismatched"] == 0, close


def test_what_had_no_room_has_none_again():
    """Limits of the process made files and bytes fail, for one rank or all. A replay has other ones: it makes no more than there was."""
    with Tmp() as tmp, Tmp() as root:
        trace, made = recorded(tmp, "refusals")
        files = {name: os.path.getsize(os.path.join(tmp, name)) for name in os.listdir(tmp) if name.startswith("data")}
        assert files == {"data": 600000, "data.0": 400000, "data.1": 0, "data.2": 400000, "data.3": 400000}
        ops = replayed(4, trace, "--root", root, "--with", "filter,preset=workload")["ops"]
        below = os.path.dirname(root + made)
        assert {name: os.path.getsize(os.path.join(below, name)) for name in os.listdir(below) if name.startswith("data")} == files
        assert ops["mpiio:MPI_File_open"]["emulated"] == 8, ops


def test_a_record_takes_the_room_that_it_needs():
    """What ranks write while they run: a text once in a chunk, and a chunk is filled before the next one is begun."""
    given_out = []
    for part in ("nothing", "short"):
        with Tmp() as tmp:
            trace, _ = recorded(tmp, "breadth", part, keep_raw=True)
            with open(os.path.join(trace + ".raw", "records"), "rb") as f:
                given_out.append(struct.unpack_from("<Q", f.read(80), 72)[0])   # feign_control.bytes
            made = re.findall(r'mpi:MPI_Allreduce\(size=8, count=1, datatype="MPI_LONG", op="MPI_SUM", comm="WORLD\{0-3\}"\) = 0', text_of(trace))
            assert len(made) == (80000 if part == "short" else 0)
    assert given_out[1] - given_out[0] < 80000 * 36, given_out


def test_threads_make_communicators_at_the_same_time():
    """Whose members ask each other for a name: not while the thread keeps the others from asking."""
    with Tmp() as tmp, Tmp() as root:
        trace, _ = recorded(tmp, "breadth", "threads")
        assert text_of(trace).count("mpi:MPI_Comm_dup") == 4 * 2 * 200
        # Nor does a replay keep the order in which each rank's threads came out of it, which is another one on each.
        report = replayed(4, trace, "--root", root, "--order", "depend", "--with", "filter,preset=workload")
        assert report["ops"]["mpi:MPI_Comm_dup"]["matched"] == 4 * 2 * 200


def test_a_communicator_of_one_rank_waits_for_nobody():
    """Open MPI lets who duplicates an older communicator go first: those of the replay must be as old as the program's."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "threads-and-self")
        report = replayed(4, trace, "--root", tmp, "--with", "filter,preset=workload", "--pace", "think", "--patience", "3s")
        assert report["ops"]["mpi:MPI_Comm_dup"]["matched"] == 4 * 6


def needs_ready_calls():
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    if subprocess.run(["mpicc", "-E", "-include", "mpi-ext.h", "-"], input="OMPI_HAVE_MPI_EXT_PCOLLREQ", capture_output=True,
                      text=True, check=False).stdout.split()[-1:] != ["1"]:
        raise Skip("this MPI has no such calls")


def test_persistent_collective_calls_are_those_that_wait_for_nobody_at_each_start():
    """An extension of Open MPI's: nobody waited for anybody in a replay, whose trace lacked what makes them."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "made-ready")
        needs_ready_calls()
        calls = """allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather gatherv reduce reduce_scatter
                reduce_scatter_block scan scatter scatterv neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv
                neighbor_alltoallw""".split()
        for ranks, how in ((4, ()), (2, ("--map", "block")), (4, ("--replayer", "posix", "--replayer", "mpi,comm=order"))):
            ops = replayed(ranks, trace, "--root", tmp, "--with", "filter,preset=workload", "--patience", "10s", *how)["ops"]
            for op, count in [*((f"I{call}", 4 * 3) for call in calls), ("Wait", 4 * 22), ("Waitall", 4 * 2), ("Startall", 4 * 2)]:
                assert ops[f"mpi:MPI_{op}"]["matched"] == count, (how, op, ops[f"mpi:MPI_{op}"])
            assert "mpi:MPI_Start" not in ops, ops["mpi:MPI_Start"]
        # What nothing made is not started, and that is told.
        r = mpirun(4, "replay", trace, "--root", tmp, "--json", "--with", "filter,preset=workload",
                   "--with", "filter,op=mpi:MPI_Send_init+mpi:MPI_Recv_init,drop=yes")
        starts = [s for s in r.json()["skips"] if "Start" in s["op"]]
        assert starts == [{"op": "mpi:MPI_Startall", "why": "its requests were not made", "count": 8}], starts


def test_persistent_collective_calls_that_ranks_start_in_different_orders():
    """Those that begin at once on one communicator have to come in one order: a replay waited for ever."""
    needs_ready_calls()
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "started-in-any-order")
        for ranks, how in ((4, ()), (2, ("--map", "block")), (2, ("--map", "cyclic")), (4, ("--replayer", "posix", "--replayer", "mpi,comm=order"))):
            ops = replayed(ranks, trace, "--root", tmp, "--with", "filter,preset=workload", "--patience", "10s", *how)["ops"]
            assert [ops[f"mpi:MPI_{op}"]["matched"] for op in ("Iallreduce", "Ibarrier", "Ibcast")] == [4 * 18, 4 * 18, 4 * 100], (how, ops)


def test_threads_that_make_communicators_do_not_wait_for_each_other():
    """Nor where some ranks' first thread is at a communicator that is younger than the second's. Nor that make windows."""
    with Tmp() as tmp:
        for what, op, before in (("halves", "mpi:MPI_Comm_dup", 4 * 2), ("windows", "mpi:MPI_Win_create_dynamic", 0)):
            trace, _ = recorded(tmp, "breadth", f"threads-and-{what}")
            for _ in repeats(3):
                report = replayed(4, trace, "--root", tmp, "--with", "filter,preset=workload", "--patience", "10s")
                assert report["ops"][op]["matched"] == before + 4 * 200 + 2 * 100, what


def test_threads_of_a_rank_come_to_windows_requests_and_messages_as_they_did():
    """What orders them is a flag in memory."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "threads-in-turn")
        for order in ((), (), ("--order", "depend")):
            ops = replayed(4, trace, "--root", tmp, "--with", "filter,preset=workload", *order)["ops"]
            assert [ops[f"mpi:{name}"]["matched"] for name in ("MPI_Put", "MPI_Win_flush", "MPI_Wait", "MPI_Irecv")] == [20000, 20000, 4, 4], ops


def test_a_file_is_open_while_threads_of_a_rank_are_at_it():
    names = ("File_open", "File_write_at", "File_write", "File_seek", "File_iwrite_at", "File_close")
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "threads-in-files")
        for order in ((), ("--order", "depend")):
            with Tmp() as root:
                ops = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *order)["ops"]
                assert [ops[f"mpiio:MPI_{name}"]["matched"] for name in names] == [4, 2000, 4, 4, 2000, 4], ops


def test_what_one_of_several_threads_begins_at_a_file_is_made_at_once():
    """Open MPI's requests of files are not safe from the progress of another thread: a replay crashed now and then."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "threads-in-files", ranks=2)
        replays_with(tmp, trace,
                     "#include <mpi.h>\n"
                     "int MPI_File_iwrite_at(MPI_File f, MPI_Offset at, const void *from, int n, MPI_Datatype t, MPI_Request *r) {\n"
                     "  return MPI_ERR_IO;\n}\n", "--with", "filter,preset=workload", calls=None)


def test_no_thread_frees_the_window_that_another_is_in():
    """Nor ends its epoch, where nothing orders them."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "threads-in-turn")
        for _ in repeats(3):
            r = mpirun(4, "replay", trace, "--root", tmp, "--with", "filter,preset=workload", "--order", "stream", "--json")
            assert r.status == 0 and r.json()["activities"], r.err


def test_what_mpi_refuses_made_nothing():
    """A failed call's handle is what was in the variable before: it is not asked for anything, and no later call means it."""
    ops = breadth("refused")["ops"]
    made = ("MPI_Type_match_size", "MPI_Isend", "MPI_Irecv", "MPI_Improbe", "MPI_Comm_dup", "MPI_Win_create")
    assert [ops[f"mpi:{name}"]["activities"] for name in made] == [8, 4, 4, 4, 4, 4]
    assert ops["mpiio:MPI_File_open"]["activities"] == 8
    assert not [name for name, o in ops.items() if name.startswith("mpi") and o["mismatched"]]


def test_messages_that_are_too_long_are_received():
    """The call that receives one fails, and has it: a replay hung, whose sender waited for who did not come."""
    report = breadth("too-long", times=3)
    assert calls(report, "MPI_Recv", "MPI_Irecv", "MPI_Send", "MPI_Isend", "MPI_Waitall") == [6, 36, 30, 12, 12]
    assert report["mismatched"] == 0
    assert len(set(re.findall(r"mpi:MPI_Recv\(.*source=(\d), tag=0\b.*= -EMSGSIZE", told("too-long")))) == 2


def test_a_directory_is_the_one_that_another_rank_made_of_its_name():
    """Ranks have directories open by their names: they know when others remove, rename or make one."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "in-directories")
        for ranks, how in ((4, ()), (2, ("--map", "block")), (4, ("--layer", "posix"))):
            with Tmp() as root:
                replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)
                assert sorted(os.listdir(f"{root}{made}.directory")) == sorted(os.listdir(f"{root}{made}.old")) == list("0123")


def test_a_file_that_must_not_have_been_there_was_or_was_not():
    """Also for ranks that share a process, each of which opens it by itself."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "exclusive")
        for ranks, how in ((4, ()), (2, ("--map", "block")), (4, ("--layer", "posix"))):
            with Tmp() as root:
                report = replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)
                assert all(os.path.exists(f"{root}{made}.{i}") for i in range(5))
                assert how[:1] == ("--layer",) or calls(report, "MPI_File_open", layer="mpiio") == [40]


def test_who_removes_a_file_that_all_ranks_remove_is_known_where_names_have_their_order():
    """The report advised --order depend, which did not know MPI_File_delete."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "removed")
        for _ in repeats(3):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--order", "depend")
                assert calls(report, "MPI_File_delete", layer="mpiio") == [160]


def test_what_an_open_made_that_failed_then_is_made_before_other_ranks_look():
    """Open MPI makes a file whose name is one letter, and says then that it cannot open it."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, """
            #include <mpi.h>
            int main(int argc, char **argv) {
              MPI_File f;
              MPI_Init(&argc, &argv);
              if (MPI_File_open(MPI_COMM_WORLD, "f", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f) == MPI_SUCCESS) MPI_File_close(&f);
              MPI_Finalize();
              return 0;
            }
            """)
        for _ in repeats(6):
            with Tmp() as root:
                replayed(2, trace, "--root", root, "--with", "filter,preset=workload", "--layer", "posix")
                assert os.path.exists(f"{root}{there}/f")


def test_a_file_is_not_made_before_all_have_come_to_its_open():
    """MPI asks all first: until then they find none, and what they remove is the one that was there before."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 3, """
            #include <mpi.h>
            #include <unistd.h>
            int main(int argc, char **argv) {
              MPI_File f;
              int rank;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              for (int i = 0; i < 4; ++i) {
                for (int k = 0; k < 3000 && rank != 0; ++k) access("made", F_OK);
                MPI_File_open(MPI_COMM_WORLD, "made", MPI_MODE_CREATE | MPI_MODE_RDWR | (i % 2 ? MPI_MODE_EXCL : 0), MPI_INFO_NULL, &f);
                MPI_File_close(&f);
                MPI_Barrier(MPI_COMM_WORLD);
                if (rank == 0) MPI_File_delete("made", MPI_INFO_NULL);
                MPI_Barrier(MPI_COMM_WORLD);
              }
              MPI_Finalize();
              return 0;
            }
            """)
        for ranks, how in ((3, ()), (2, ("--map", "block")), (2, ("--map", "cyclic"))):
            with Tmp() as root:
                ops = replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)["ops"]
                assert ops["access"]["mismatched"] == 0 and ops["mpiio:MPI_File_open"]["matched"] == 12, (how, ops["access"])


def test_a_file_is_not_looked_for_before_all_have_come_to_its_open():
    """One of them makes it as any other file, and then comes to the open in which the others wait."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 3, """
            #include <fcntl.h>
            #include <mpi.h>
            #include <stdio.h>
            #include <unistd.h>
            int main(int argc, char **argv) {
              char name[20];
              MPI_File f;
              int rank;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              for (int i = 0; i < 4; ++i) {
                sprintf(name, "made%d", i);
                for (int k = 0; k < 3000 && rank == 0; ++k) access(name, F_OK);
                if (rank == 0) close(open(name, O_CREAT | O_WRONLY, 0644));
                MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &f);
                MPI_File_close(&f);
              }
              MPI_Finalize();
              return 0;
            }
            """)
        for ranks, how in ((3, ()), (2, ("--map", "block")), (2, ("--map", "cyclic"))):
            with Tmp() as root:
                ops = replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)["ops"]
                assert ops["access"]["mismatched"] == 0 and ops["mpiio:MPI_File_open"]["matched"] == 12, (how, ops["mpiio:MPI_File_open"])


APPEND = """
#include <mpi.h>
static void append(int times) {  /* all ranks, to one end */
  static char bytes[1000];
  MPI_File f;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < times; ++i) {
    MPI_File_open(MPI_COMM_WORLD, "log", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &f);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(f, rank * 1000, MPI_SEEK_CUR);
    MPI_File_write(f, bytes, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
  }
}
"""


def test_ranks_that_share_a_process_begin_at_one_end_of_a_file():
    """Each opens it for itself: who went on from an open with MPI_MODE_APPEND made it longer for who opened it later."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 4, APPEND + """
            int main(int argc, char **argv) {
              MPI_Init(&argc, &argv);
              append(10);
              MPI_Finalize();
              return 0;
            }
            """)
        for how in ("block", "cyclic"):
            with Tmp() as root:
                # (The barrier of the program is not made here.)
                ops = replayed(2, trace, "--root", root, "--with", "filter,preset=workload", "--map", how, "--with", "filter,drop=yes,op=mpi:MPI_Barrier")["ops"]
                assert ops["mpiio:MPI_File_seek"]["matched"] == 40 and os.path.getsize(f"{root}{there}/log") == 40000, (how, ops["mpiio:MPI_File_seek"])


CALLED_BACK = """
#include <mpi.h>
#include <stdio.h>
static MPI_Comm own;
static int copies(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
  MPI_Comm other;
  MPI_Comm_dup(own, &other);
  MPI_Comm_free(&other);
  *(void **)out = in;
  return *flag = 1, MPI_SUCCESS;
}
static void has_attribute(void) {  /* which MPI copies in an open */
  int key;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &own);
}
"""


def test_what_lies_in_an_open_after_a_call_that_it_called_back_for_is_in_it():
    """MPI copies attributes in an open, by a function of the program's that may call MPI: the open goes on behind that."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 4, CALLED_BACK + APPEND + """
            int main(int argc, char **argv) {
              MPI_Init(&argc, &argv);
              has_attribute();
              append(40);
              MPI_Finalize();
              return 0;
            }
            """)
        with Tmp() as root:
            # (The barrier of the program is not made here.)
            ops = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--layer", "posix", "--with", "filter,drop=yes,op=mpi:MPI_Barrier")["ops"]
            assert ops["lseek"]["mismatched"] == 0 and os.path.getsize(f"{root}{there}/log") == 160000, ops["lseek"]


def test_who_makes_a_file_in_an_open_does_so_after_a_call_that_it_called_back_for_too():
    """The open was taken to be over when a function of the program's that MPI called in it had called MPI: who made its file was nobody."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 4, CALLED_BACK + """
            int main(int argc, char **argv) {
              MPI_File f;
              MPI_Init(&argc, &argv);
              has_attribute();
              for (int i = 0; i < 40; ++i) {
                char name[20];
                snprintf(name, sizeof name, "made.%d", i);
                MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
                MPI_File_close(&f);
              }
              MPI_Finalize();
              return 0;
            }
            """)
        with Tmp() as root:
            replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--layer", "posix")
            assert len(os.listdir(root + there)) == 40


def test_ranks_that_share_a_process_begin_writes_that_are_left_to_posix_calls():
    """A collective write that waits for nobody was refused there."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 4, """
            #include <mpi.h>
            int main(int argc, char **argv) {
              static char bytes[1000];
              MPI_File f;
              MPI_Request q;
              int rank, flag = 0;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
              for (int i = 0; i < 5; ++i) {
                MPI_File_iwrite_at_all(f, (4 * i + rank) * 1000, bytes, 1000, MPI_BYTE, &q);
                flag = 0;
                if (i % 2) MPI_Wait(&q, MPI_STATUS_IGNORE);
                else while (!flag) MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
              }
              MPI_File_close(&f);
              MPI_Finalize();
              return 0;
            }
            """)
        for how in ((), ("--map", "block"), ("--map", "cyclic")):
            with Tmp() as root:
                report = replayed(2 if how else 4, trace, "--root", root, "--with", "filter,preset=workload", "--layer", "posix", *how)
                assert report["mismatched"] == 0 and os.path.getsize(f"{root}{there}/data") == 20000, (how, report["mismatches"])


def test_files_are_closed_when_what_was_begun_on_them_is_over():
    """Also where a modifier left out what waits for it: Open MPI crashed, or closed them too early."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, """
            #include <mpi.h>
            int main(int argc, char **argv) {
              enum { LENGTH = 8 << 20, REQUESTS = 6 };
              static char bytes[LENGTH];
              MPI_File f;
              MPI_Request q[REQUESTS];
              int rank;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
              for (int i = 0; i < REQUESTS; ++i)
                MPI_File_iwrite_at(f, (MPI_Offset)(rank * REQUESTS + i) * LENGTH, bytes, LENGTH, MPI_BYTE, &q[i]);
              MPI_Waitall(REQUESTS, q, MPI_STATUSES_IGNORE);
              MPI_File_close(&f);
              MPI_Finalize();
              return 0;
            }
            """)
        for without in ("mpi:MPI_Waitall", "mpi:MPI_Waitall+mpiio:MPI_File_close,state=drop") * len(repeats(4)):
            with Tmp() as root:
                report = replayed(2, trace, "--root", root, "--with", "filter,preset=workload", "--with", "filter,drop=yes,op=" + without)
                assert report["mismatched"] == 0 and os.path.getsize(f"{root}{there}/data") == 12 * (8 << 20), report["mismatches"]


def test_files_left_open_are_closed_in_one_order_by_all():
    """Of two, rank 0 has the second one in the place of another file, which MPI comes to first as it ends."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, """
            #include <mpi.h>
            int main(int argc, char **argv) {
              MPI_File alone, one, other;
              MPI_Comm comm;
              int rank;
              MPI_Init(&argc, &argv);
              MPI_Comm_rank(MPI_COMM_WORLD, &rank);
              MPI_Comm_dup(MPI_COMM_WORLD, &comm);
              if (rank == 0) MPI_File_open(MPI_COMM_SELF, "alone", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &alone);
              MPI_File_open(comm, "one", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &one);
              if (rank == 0) MPI_File_close(&alone);
              MPI_File_open(MPI_COMM_WORLD, "other", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &other);
              MPI_Barrier(MPI_COMM_WORLD);
              MPI_File_close(&one);
              MPI_File_close(&other);
              MPI_Finalize();
              return 0;
            }
            """)
        with Tmp() as root:
            report = replayed(2, trace, "--root", root, "--with", "filter,preset=workload", "--with", f"filter,drop=yes,state=drop,op=mpiio:MPI_File_close,path={there}/o*")
            assert calls(report, "MPI_File_open", "MPI_File_close", layer="mpiio") == [5, 1], report["ops"]


def test_what_an_open_made_that_failed_for_want_of_space_was_not_there_before():
    """That it failed so tells nothing of the name: who finds the file in the same call comes after who made it."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, """
            #include <fcntl.h>
            #include <mpi.h>
            #include <unistd.h>
            int PMPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file) {
              int rank = 0;
              PMPI_Comm_rank(comm, &rank);
              if (rank == 0) close(open(name, O_CREAT | O_RDWR, 0666));
              PMPI_Barrier(comm);
              if (rank == 1) close(open(name, O_RDWR));
              return MPI_ERR_NO_SPACE;
            }
            int main(int argc, char **argv) {
              MPI_File f;
              MPI_Init(&argc, &argv);
              MPI_File_open(MPI_COMM_WORLD, "made", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
              MPI_Finalize();
              return 0;
            }
            """)
        of = feign("info", trace, "--dependencies", "--json", "--with", "filter,preset=workload", "--with", "filter,path=**/made").json()
        assert of["dependencies"]["rules"].get("path", {}).get("found") == 1, of["dependencies"]


WINDOW_OF_FREED = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int k = 0; k < 3; ++k) {
    MPI_Comm some, reversed;
    MPI_Win window;
    int* base;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, rank, &some);
    if (rank != 0) {
      MPI_Win_allocate(64, 4, MPI_INFO_NULL, some, &base, &window);
      MPI_Comm_free(&some);
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    if (rank != 0) {
      int one = 1;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
      MPI_Put(&one, 1, MPI_INT, 2, rank, 1, MPI_INT, window);
      MPI_Win_unlock(2, window);
      MPI_Win_free(&window);
    }
    MPI_Comm_free(&reversed);
  }
  MPI_Finalize();
  return 0;
}
"""


def test_a_window_has_its_ranks_when_its_communicator_is_freed():
    """The next communicator lies where that one did, and its ranks were taken for the window's."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 4, WINDOW_OF_FREED)
        text = text_of(trace)
        assert set(re.findall(r"MPI_Win_lock\(.*?rank=(\d+)", text)) == set(re.findall(r"MPI_Put\(.*?rank=(\d+)", text)) == {"3"}
        report = replayed(4, trace, "--root", tmp, "--with", "filter,preset=workload")
        assert calls(report, "MPI_Win_lock", "MPI_Put", "MPI_Win_unlock") == [9, 9, 9]


LONG_TYPE = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char one = 0;
  MPI_Datatype type;
  MPI_Type_contiguous(600000000, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Send(&one, 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Type_free(&type);
  MPI_Finalize();
  return 0;
}
"""


def test_types_longer_than_an_int_have_their_length():
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, LONG_TYPE)
        assert re.findall(r"MPI_Send\(size=(\d+)", text_of(trace)) == ["2400000000"] * 2


NEIGHBOURS_LATER = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int size[1] = {2}, around[1] = {1};
  int mine = rank, theirs[2];
  MPI_Comm line, later;
  MPI_Request request;
  MPI_Cart_create(MPI_COMM_WORLD, 1, size, around, 0, &line);
  MPI_Comm_idup(line, &later, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Neighbor_allgather(&mine, 1, MPI_INT, theirs, 1, MPI_INT, later);
  MPI_Comm_free(&later);
  MPI_Comm_free(&line);
  MPI_Finalize();
  return 0;
}
"""


def test_a_communicator_that_is_there_later_has_the_neighbours_of_the_first():
    """Without them, only the waiting for all was left of the call."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, NEIGHBOURS_LATER)
        assert re.findall(r'MPI_Neighbor_allgather\(.*?comm="(.*?)"', text_of(trace)) == ["#0.1.1:cart(2;1){0-1}"] * 2
        assert calls(replayed(2, trace, "--root", tmp, "--with", "filter,preset=workload"), "MPI_Neighbor_allgather") == [2]


NO_ORIGIN = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int *base, got[100], one = 1;
  MPI_Win window;
  MPI_Request request;
  MPI_Win_allocate(400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_lock_all(0, window);
  MPI_Get_accumulate(0, 0, MPI_INT, got, 100, MPI_INT, 1 - rank, 0, 100, MPI_INT, MPI_NO_OP, window);
  MPI_Rget_accumulate(0, 0, MPI_INT, got, 50, MPI_INT, 1 - rank, 0, 50, MPI_INT, MPI_NO_OP, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Fetch_and_op(&one, got, MPI_INT, 1 - rank, 0, MPI_SUM, window);
  MPI_Compare_and_swap(&one, &one, got, MPI_INT, 1 - rank, 0, window);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
"""


def test_what_is_fetched_from_a_window_is_as_long_as_it_is():
    """MPI_NO_OP has no origin that would tell, and two calls have no count: all of them moved nothing."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, NO_ORIGIN)
        names = ("MPI_Get_accumulate", "MPI_Rget_accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap")
        text = text_of(trace)
        assert [set(re.findall(rf"{name}\(size=(\d+)", text)) for name in names] == [{"400"}, {"200"}, {"4"}, {"4"}]
        assert calls(replayed(2, trace, "--root", tmp, "--with", "filter,preset=workload"), *names) == [2] * 4


COLONS = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 2; ++i) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, i ? "12:30:00" : "ufs:other", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }
  if (rank == 0) MPI_File_delete("ufs:other", MPI_INFO_NULL);
  MPI_Finalize();
  return 0;
}
"""


def test_a_colon_is_part_of_a_name_to_open_mpis_own_and_ends_a_file_system_to_romio():
    for component, colon in (("ompio", True), ("romio321", False)):
        with Tmp() as tmp:
            # ROMIO knows no file system 12: no such file is made there.
            code = COLONS if colon else COLONS.replace("i < 2", "i < 1")
            os.environ["OMPI_MCA_io"] = component
            try:
                trace, there = recorded_where_it_works(tmp, 2, code)
            finally:
                del os.environ["OMPI_MCA_io"]
            if colon:
                assert os.listdir(there) == ["12:30:00"], os.listdir(there)
            opened = set(re.findall(r'MPI_File_open\(.*?filename="(.*?)"', text_of(trace)))
            assert opened == {os.path.join(there, n) for n in (("12:30:00", "ufs:other") if colon else ("other",))}, opened
            with Tmp() as root:
                replayed(2, trace, "--root", root, "--with", "filter,preset=workload")
                assert os.listdir(root + there) == os.listdir(there)


REFUSED_ALONE = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int some[4] = {0};
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "absent", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  if (rank == 0) MPI_File_close(&file);
  MPI_File_open(MPI_COMM_WORLD, "made", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  if (rank == 0) MPI_File_read_all(MPI_FILE_NULL, some, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(file, 16 * rank, some, 4, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_File_open(MPI_COMM_WORLD, "", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_Finalize();
  return 0;
}
"""


def test_a_collective_call_that_one_rank_is_refused_is_no_call_that_the_others_make():
    """It waited for the others, who never came."""
    with Tmp() as tmp:
        trace, there = recorded_where_it_works(tmp, 2, REFUSED_ALONE)
        for options in ((), ("--layer", "posix")):
            with Tmp() as root:
                report = replayed(2, trace, "--root", root, "--with", "filter,preset=workload", *options)
                assert os.path.getsize(os.path.join(root + there, "made")) == 32
                left = [s for s in report["skips"] if s["op"].startswith("mpiio") and not options]
                assert not left, left


TOLD = r"""
#include <mpi.h>
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int value = 0, over = 0;
  MPI_Request request;
  // Whom the replay's messages order, no name does.
  MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &value, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) {
    for (int i = 0; i < 20000; ++i) access("absent", F_OK);
    close(open("made", O_CREAT | O_WRONLY, 0644));
    MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    for (; !over; usleep(1000)) MPI_Request_get_status(request, &over, MPI_STATUS_IGNORE);
    close(open("made", O_RDONLY));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""


def test_who_was_told_that_a_request_is_over_goes_on_then():
    """It looked whether the message was there, and went on before it was: the file was not made."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 2, TOLD)
        for _ in repeats(2):
            with Tmp() as root:
                replayed(2, trace, "--root", root, "--with", "filter,preset=workload")
        # In one process the message says so before the name does.
        rules = feign("info", trace, "--dependencies", "--json", "--with", "filter,preset=workload").json()["dependencies"]["rules"]
        assert rules["mpi"]["kept"] == 3 and rules["path"]["kept"] == 0, rules


def test_what_a_file_refuses_it_refuses_again():
    """A view's representation is the program's, and what MPI says of an error is recorded as a replay says it."""
    report = breadth("forbidden")
    assert report["ops"]["mpiio:MPI_File_set_view"]["matched"] == 12
    assert not [name for name, o in report["ops"].items() if name.startswith("mpiio") and o["mismatched"]]


def test_derived_datatypes_in_messages_and_views():
    report = breadth("datatypes")
    assert calls(report, "MPI_Sendrecv", "MPI_Bcast") == [44, 44]


def test_types_that_removed_calls_made():
    """They were not recorded, and a type was taken for the one that had its handle before."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "old-types")
        text = text_of(trace)
        sent = re.findall(r'MPI_Bcast\(size=(\d+), count=1, datatype="(\w+)', text)
        assert {one: sent.count(one) for one in sent} == {(size, name): 16 for size, name in (
            ("24", "vector"), ("20", "struct"), ("8", "hvector"), ("12", "hindexed"))}, sent
        assert len(re.findall(r"MPI_Type_struct\(.*newtype=\"struct\(", text)) == 16
        with Tmp() as root:
            report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload")
            assert calls(report, "MPI_Bcast") == [64]


ROMIO = {"OMPI_MCA_io": "romio321"}


def by_romio(tmp, part):
    """A trace of it with ROMIO in place of OMPIO, and the name that it was given."""
    program, made, trace = (os.path.join(tmp, name) for name in ("breadth", "made", "t.feign"))
    launch = [*command(4)[:-1], "--mca", "io", "romio321", program, made]
    if shutil.which("mpicc") is None:
        raise Skip("there is no mpicc")
    subprocess.run(["mpicc", "-w", "-pthread", "-o", program, os.path.join(TOP, "tests", "apps", "breadth.c")], check=True)
    if subprocess.run([*launch, "datatypes"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=QUIET).returncode:
        raise Skip("Open MPI has no ROMIO here")
    os.unlink(made)
    r = feign("record", "--mpi", "-q", "-o", trace, "--", *launch, part, timeout=80)
    assert r.status == 0, r.err
    return trace, made


PIECES = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  enum { kPieces = COUNT, kBytes = BYTES };
  static char data[kPieces * kBytes];
  static MPI_Aint at[kPieces];
  int rank, provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_LEVEL, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long i = 0; i < kPieces; ++i) at[i] = (PLACE) + rank * kBytes;
  MPI_Datatype type;
  MPI_Type_create_hindexed_block(kPieces, kBytes, at, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL);
  MPI_File_write_all(file, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_close(&file);
  MPI_Type_free(&type);
  MPI_Finalize();
  return 0;
}
"""


def pieces(level):
    return PIECES.replace("LEVEL", level).replace("COUNT", "500").replace("BYTES", "32").replace("PLACE", "i * 256 + (i == kPieces - 1 ? 1 << 20 : 0)")


def irregular_pieces(count):
    """Of one rank alone: the others' text is short."""
    return PIECES.replace("LEVEL", "SINGLE").replace("COUNT", str(count)).replace("BYTES", "8").replace("PLACE", "(rank == 0 ? i * i : i * 64) * 16")


def test_a_view_of_many_irregular_pieces_is_as_recorded():
    with Tmp() as tmp, Tmp() as root:
        trace, there = recorded_where_it_works(tmp, 4, irregular_pieces(1300))
        assert len(re.findall(r"MPI_File_set_view\(.*?hindexed_block.*?\)+ = 0", text_of(trace))) == 4
        replayed(4, trace, "--root", root, "--with", "filter,preset=workload")
        assert os.path.getsize(root + there + "/data") == os.path.getsize(there + "/data")


def test_a_view_of_a_type_without_text_is_set_as_one_of_bytes():
    """All ranks set a view together: of one whose type has a text that is too long the others wait."""
    with Tmp() as tmp:
        trace, _ = recorded_where_it_works(tmp, 4, irregular_pieces(3000))
        views = re.findall(r"MPI_File_set_view\(.*?\)+ = 0", text_of(trace))
        assert len(views) == 4 and sum("hindexed_block" in v for v in views) == 3, views
        for layer in ((), ("--layer", "posix")):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--patience", "10s", "--with", "filter,preset=workload", *layer)
                if not layer:
                    assert calls(report, "MPI_File_set_view", "MPI_File_write_all", layer="mpiio") == [4, 4]


def test_pieces_of_collective_writes_are_written_with_what_lies_between_where_they_were():
    """Open MPI does so unless it was begun for several threads, as a replay begins it: one write was a thousand."""
    blocks = []
    for level in ("SINGLE", "MULTIPLE"):
        with Tmp() as tmp, Tmp() as root:
            trace, there = recorded_where_it_works(tmp, 4, pieces(level))
            replayed(4, trace, "--root", root, "--with", "filter,preset=workload")
            program, replay = (os.stat(os.path.join(d, "data")).st_blocks * 512 for d in (there, root + there))
            assert abs(program - replay) < 1 << 18, (level, program, replay)
            blocks.append(program)
    if blocks[0] < 1 << 20 or blocks[1] >= 1 << 20:
        raise Skip(f"this MPI does not: {blocks}")


def test_files_by_romio():
    """It calls MPI by the names that programs do, also where the wrappers ask it for something."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "datatypes")
        text = text_of(trace)
        assert sorted(re.findall(r"MPI_File_write_at_all\(.*?\) = (\d+)", text)) == ["0"] * 6 + ["10"] * 2
        assert sorted(re.findall(r"MPI_File_write_at_all_end\(.*?\) = (\d+)", text)) == ["0"] * 3 + ["10"]
        for env, *layer in ((None,), (ROMIO,), (None, "--layer", "posix")):  # it looks for a file before it makes it
            with Tmp() as root:
                replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *layer, env=env)
                assert os.path.getsize(root + made) == os.path.getsize(made)


def test_shared_pointers_by_romio():
    """It keeps each in a file beside the one that has it. A replay with io=real is by it, too, and leaves no such file,
    nor that of a replay that was ended."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "pointers")
        for _ in range(2):
            with Tmp() as root:
                os.mkdir(left := os.path.join(root, ".feign-mpi-0123456789abcdef"))
                with open(os.path.join(left, "1.2"), "w", encoding="utf-8") as f:
                    f.write("left")
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", env=ROMIO)
                assert calls(report, "MPI_File_write_shared", "MPI_File_write_ordered", "MPI_File_seek_shared", layer="mpiio") == [12] * 3
                assert [os.path.getsize(f"{root}{made}.{n}") for n in range(6)] == [600, 600] + [150] * 4
                assert not [name for name in os.listdir(root) if name.startswith(".feign-")]
                assert not [name for name in os.listdir(os.path.dirname(root + made)) if "shfp" in name]


def test_files_that_romio_appends_to():
    """It sets their shared pointers to the end, which it keeps in a file beside each."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "appended")
        with Tmp() as root:
            report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", env=ROMIO)
            assert calls(report, "MPI_File_open", "MPI_File_write_at", layer="mpiio") == [4] * 2
            assert os.path.getsize(root + made) == 4 and not [name for name in os.listdir(root) if name.startswith(".feign-")]


def replayed_by_both(trace):
    """Open MPI's two ways to files: a root, and the report of the replay in it, of each."""
    for env in (None, ROMIO):
        with Tmp() as root:
            yield root, replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", env=env)


def test_files_that_romio_opens_late():
    """By the name that it was given, which is to lead to them as long as they are open."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "opened-late")
        for root, report in replayed_by_both(trace):
            assert calls(report, "MPI_File_get_size", "MPI_File_seek", layer="mpiio") == [8] * 2
            assert [os.path.getsize(f"{root}{made}.{n}") for n in range(2)] == [40, 70]


def test_romio_reads_into_types_that_begin_below_zero():
    """It puts bytes before where they belong, in a replay before the memory for them."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "below-zero")
        for root, report in replayed_by_both(trace):
            assert calls(report, "MPI_File_read_at", layer="mpiio") == [4] and os.path.getsize(root + made) == 200


def test_a_view_without_bytes_is_not_asked_for_places():
    """ROMIO divides by how many there are."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "empty-view")
        for root, report in replayed_by_both(trace):
            assert calls(report, "MPI_File_set_view", "MPI_File_write_all", "MPI_File_read_at_all", layer="mpiio") == [4] * 3
            assert os.path.getsize(root + made) == os.path.getsize(made) == 19


def test_a_file_that_goes_when_it_is_closed_is_gone_then():
    """No rank removes what another makes of that name afterwards. (Open MPI's own does.)"""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "temporary")
        for ranks, how in ((4, ()), (2, ("--map", "block"))):
            with Tmp() as root:
                replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)
                assert os.path.getsize(root + made) == os.path.getsize(made) == 7


def test_files_are_made_longer_by_one_rank():
    """Open MPI's own MPI_File_preallocate leaves out what others wait for on ranks that come late: the next MPI_File_open failed."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "preallocated")
        for ranks, how in ((4, ()), (2, ("--map", "block"))):
            with Tmp() as root:
                report = replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", *how)
                assert calls(report, "MPI_File_preallocate", "MPI_File_sync", layer="mpiio") == [84, 4]
                assert os.path.getsize(root + made) == os.path.getsize(made) == 20 << 18


def test_files_are_made_longer_from_where_the_first_rank_is_in_them():
    """There Open MPI writes, and leaves a hole before it: in a replay it wrote from the beginning."""
    def data_from(name):
        with open(name, "rb") as f:
            return os.lseek(f.fileno(), 0, os.SEEK_DATA), os.fstat(f.fileno()).st_size

    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "preallocated-behind")
        for ranks, how in ((4, ()), (2, ("--map", "block"))):
            with Tmp() as root:
                report = replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", *how)
                assert calls(report, "MPI_File_preallocate", "MPI_File_get_position", layer="mpiio") == [8] * 2
                for name in (f"{made}.{n}" for n in range(2)):
                    assert data_from(root + name) == data_from(name), (how, name, data_from(root + name), data_from(name))


def test_files_that_may_not_be_read_are_made_longer():
    """Open MPI says that this fails, and does it: in a replay the file stayed as short as it was. And less than nothing was too much."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "preallocated-unread")
        for ranks, how in ((4, ()), (2, ("--map", "block"))):
            with Tmp() as root:
                report = replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)
                assert [report["ops"][f"mpiio:MPI_File_{name}"]["matched"] for name in ("preallocate", "seek")] == [12, 4]
                assert os.path.getsize(root + made) == os.path.getsize(made) >= 1000


def test_reads_that_meet_the_end_are_over():
    """Open MPI's own, if they are only begun, read on and on; of one together it says that it was all that was asked for."""
    with Tmp() as tmp:
        trace, made = by_romio(tmp, "past-end")
        for env in (None, ROMIO):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--patience", "10s", env=env)
                assert calls(report, "MPI_File_read_at_all", "MPI_File_iread", "MPI_File_read_ordered_begin", "MPI_File_read_all_end", layer="mpiio") == [4] * 4
                assert os.path.getsize(root + made) == os.path.getsize(made) == 400


def test_who_ends_a_split_call_waits_for_who_begins_it():
    """Also where it is left to the posix calls in it: what one made before it is there for another after it."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "split")
        for _ in range(2):
            with Tmp() as root:
                replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--layer", "posix")


def test_files_in_every_way():
    """Shared and ordered pointers, split calls, requests, deletion on close. Open MPI writes some of it by threads of its own."""
    report = breadth("files")
    with open(os.path.join(TOP, "layers", "mpiio.h"), encoding="utf-8") as f:
        moves = re.findall(r"^//@ op \d+ (\w+) kind=(?:read|write) ", f.read(), re.M)
    assert report["ops"]["access"]["mismatched"] == 0, "prepared what MPI_File_open makes"
    # Each says of what files it is: of none, of all that are opened.
    errors = [report["ops"][f"mpiio:MPI_File_{what}_errhandler"] for what in ("create", "get", "set")]
    assert [(o["emulated"], o["skipped"], o["mismatched"]) for o in errors] == [(4, 0, 0), (4, 0, 0), (8, 0, 0)], errors
    # Some of them twice.
    assert {min(n, 4) for n in calls(report, *(name for name in moves), layer="mpiio")} == {4}, report["ops"]


def test_shared_pointers_are_no_other_replays():
    """Open MPI has a semaphore a file, called after the last part of its name: what was killed may have left one locked."""
    libc = ctypes.CDLL(None, use_errno=True)
    left = [f"/OMPIO_0.{n}".encode() for n in range(8)]
    try:
        for name in left:
            libc.sem_open(name, os.O_CREAT, 0o600, 0)
        breadth("files", "--patience", "5s", times=1)
    finally:
        for name in left:
            libc.sem_unlink(name)


def test_threads_that_mpi_starts_know_the_files():
    """They are made in a call, and have what their maker has from when that began."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "nonblocking")
        lines = [line for line in text_of(trace).splitlines() if re.search(r"\bpwrite\w*\(", line)]
        assert len(lines) == 80 and all(f'path="{made}"' in line for line in lines), lines[:5]
        os.mkdir(root := os.path.join(tmp, "root"))
        assert feign("replay", trace, "--root", root, "--layer", "posix", "--order", "depend").status == 0
        assert os.path.getsize(root + made) == os.path.getsize(made) == 80000


def test_what_ranks_do_in_collective_calls_has_its_order():
    """Also where they are left to the posix calls in them, or ranks share a process: one of them makes or cuts a file, others look at it."""
    with Tmp() as tmp:
        trace, _ = recorded(tmp, "breadth", "in-turn")
        for ranks, how in ((4, ("--layer", "posix")), (4, ("--layer", "posix", "--order", "depend")), (2, ("--map", "block"))):
            with Tmp() as root:
                replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)


def test_who_reads_to_the_end_of_a_file_comes_before_who_makes_it_longer():
    for part, ways in (("ends", ((4, ("--layer", "posix")), (2, ("--map", "block")), (3, ("--map", "cyclic")))), ("shared-ends", ((4, ("--layer", "posix")),) * 3)):
        with Tmp() as tmp:
            trace, made = recorded(tmp, "breadth", part)
            for ranks, how in ways:
                with Tmp() as root:
                    replayed(ranks, trace, "--root", root, "--with", "filter,preset=workload", *how)
                    assert os.path.getsize(root + made) == os.path.getsize(made) == 16000


def test_ranks_that_share_a_process_begin_reads_and_writes_of_files():
    """Open MPI completes in any thread what another one has half begun: it crashed, or waited for ever, every few times."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "begun", ranks=8)
        for _ in repeats(8):
            with Tmp() as root:
                report = replayed(3, trace, "--root", root, "--map", "cyclic", "--with", "filter,preset=workload", "--patience", "5s")
                assert calls(report, "MPI_File_iwrite", "MPI_File_iread_at", "MPI_File_write_all_end", layer="mpiio") == [8 * 320, 320, 320]
                assert {os.path.getsize(f"{root}{made}.{n}") for n in range(8)} == {72}


def test_ranks_that_share_a_process_sync_files():
    """Open MPI syncs none while its process has a request under way: it may be another recorded rank's."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "syncs")
        for ranks in (2, 3):
            with Tmp() as root:
                report = replayed(ranks, trace, "--root", root, "--map", "block", "--with", "filter,preset=workload")
                syncs = report["ops"]["mpiio:MPI_File_sync"]
                assert (syncs["activities"], syncs["skipped"], syncs["emulated"]) == (80, 0, 40), syncs
                assert os.path.getsize(f"{root}{made}.1") == os.path.getsize(f"{made}.1")


def check_fortran(*options, program="fortran"):
    with Tmp() as tmp:
        trace, made = recorded(tmp, program, compile=("mpif90", "-cpp", *options))
        with Tmp() as root:
            report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload")
            assert calls(report, "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce") == [20] * 4
            assert program != "fortran" or report["ops"]["mpi:MPI_Grequest_start"]["activities"] == 4
            assert report["ops"]["mpiio:MPI_File_write_at_all"]["matched"] == 4
            assert os.path.getsize(root + made) == os.path.getsize(made) == 3200
            return report["ops"]


def test_a_fortran_program_with_the_module():
    check_fortran()


def test_a_fortran_program_with_the_header():
    check_fortran("-DHEADER")


def test_persistent_collective_calls_of_a_fortran_program():
    needs_ready_calls()
    assert check_fortran("-DREADY")["mpi:MPI_Ibarrier"]["matched"] == 4 * 3


def test_a_fortran_program_with_the_module_of_2008():
    with Tmp() as tmp:
        probe = os.path.join(tmp, "probe.f90")
        with open(probe, "w", encoding="ascii") as f:
            f.write("use mpi_f08\nend\n")
        if shutil.which("mpif90") and subprocess.run(["mpif90", "-o", os.path.join(tmp, "probe"), probe], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("this MPI has no module mpi_f08, or there is no Fortran compiler")
    check_fortran(program="fortran08")


def every_way(part):
    """Replayed by messages, by order alone, and with the posix calls instead of MPI-IO's."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", part)
        for options in ((), ("--replayer", "posix", "--replayer", "mpi,comm=order"), ("--order", "stream"), ("--layer", "posix")):
            with Tmp() as root:
                report = replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *options)
                if os.path.exists(made):
                    assert os.path.getsize(root + made) == os.path.getsize(made), options


def test_operations_without_a_count():
    every_way("fetch")


def test_receives_that_nobody_completes():
    every_way("unfinished")


def test_collective_calls_on_files_that_others_are_still_at():
    every_way("sizes")


def test_calls_on_files_under_the_lock_of_a_window():
    every_way("window-locks")


def test_collective_calls_that_move_nothing_for_some():
    every_way("nothing")


def test_what_a_rank_starts_is_that_ranks():
    """A program that it starts by system() reads what the rank has written by then."""
    with Tmp() as tmp:
        trace, made = recorded(tmp, "breadth", "programs")
        streams = {s["process"]: s for s in json.loads(feign("info", "--json", trace).out)["streams"] if s["process"] == s["thread"]}
        parts = {n: [s["rank"] for s in streams.values() if s["rank"] == n] for n in range(4)}
        assert all(len(ranks) >= 4 for ranks in parts.values()), streams  # itself, and three shells
        for layer in ((), ("--layer", "posix")):
            with Tmp() as root:
                replayed(4, trace, "--root", root, "--with", "filter,preset=workload", *layer)
                assert {os.path.getsize(f"{root}{made}.{n}.all") for n in range(4)} == {6}


def test_ranks_that_meet_and_were_started_together_are_told_apart():
    assert calls(breadth("halves"), "MPI_Allreduce") == [4]


def test_ranks_that_a_program_starts_are_said():
    """They count from 0 again: their messages cannot be told from those of the ranks that started them."""
    with Tmp() as tmp, Tmp() as root:
        trace, made = recorded(tmp, "breadth", "spawn")
        r = mpirun(4, "replay", trace, "--root", root, "--with", "filter,preset=workload")
        assert r.status == 2 and "(MPI_Comm_spawn, MPI_Comm_connect …)" in r.err and "want --replayer posix" in r.err, r.err
        replayed(4, trace, "--root", root, "--with", "filter,preset=workload", "--replayer", "posix")
        assert os.path.getsize(root + made) == os.path.getsize(made) == 1


if __name__ == "__main__":
    main(globals())
