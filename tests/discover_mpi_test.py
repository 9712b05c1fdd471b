#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`feign discover` where calls that synchronise show who waits for whom: MPI, pipes, locks. The programs of
tests/apps/silent with messages in place of flags, each with its own log of who waited for whom."""
import os

import silent
from harness import Tmp, feign, main


def discover(tmp, *command, options=(), name="o"):
    out = os.path.join(tmp, name)
    r = feign("discover", "-o", out, *options, "--", *command)
    assert r.status == 0, r.err
    return silent.load(out)


def ranks(tmp, mode, *words, nodes=3, options=()):
    program = os.path.join(tmp, "silent-mpi")
    if not os.path.exists(program):
        program = silent.build(tmp, mpi=True)
    folder = silent.data(os.path.join(tmp, "d"))
    report = discover(tmp, *silent.mpirun(nodes), program, mode, folder, *words, options=[*silent.leave_out(folder), *options], name=mode)
    assert [n["name"] for n in report["nodes"]] == [f"rank:{i}" for i in range(nodes)], report["nodes"]
    missed, wrong, least = silent.compare(folder, report)
    assert not missed and not wrong, (mode, missed[:5], wrong[:5])
    assert report["dependencies_kept"] <= 1.2 * least, (mode, report["dependencies_kept"], least)
    return report


def test_messages_and_collectives_show_every_dependency_in_one_run():
    with Tmp() as tmp:
        silent.mpirun(1)
        for mode in silent.MODES:
            report = ranks(tmp, mode, "rounds=2", "compute=50", options=["--nodes", "none"])
            assert report["runs"] == 1 and report["delays"] == 0, report
            assert {d["means"] for d in report["dependencies"]} == {"shown"}


def test_throttling_ranks_finds_the_same():
    with Tmp() as tmp:
        silent.mpirun(1)
        for mode in "pseudosync", "halo":
            report = ranks(tmp, mode, "rounds=1", "compute=50")
            assert report["runs"] == 4
            assert all("throttling" in d["means"] for d in report["dependencies"]), report["dependencies"]


def test_what_calls_show_needs_few_delays():
    with Tmp() as tmp:
        silent.mpirun(1)
        report = ranks(tmp, "pseudosync", "rounds=30", "compute=50", options=["--adaptive"])
        assert report["delays"] < sum(n["calls"] for n in report["nodes"]) / 4, report["delays"]


def test_a_pipe_shows_who_waits():
    with Tmp() as tmp:
        folder = os.path.join(tmp, "d")
        os.mkdir(folder)
        script = f"{{ echo a > {folder}/x; echo go; }} | {{ read l; read m < {folder}/x; echo $m > {folder}/y; }}"
        report = discover(tmp, "sh", "-c", script, options=["--only", folder, "--nodes", "none"])
        shown = {(d["node"], d["call"], d["on_node"], d["shown_by"]) for d in report["dependencies"]}
        assert shown == {(1, 0, 0, "read")}, report["dependencies"]
        assert all(d["on_call"] == report["nodes"][0]["calls"] - 1 for d in report["dependencies"])


main(globals())
