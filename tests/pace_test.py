#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Paces, threads and what the report says of them, as commands. (streams_test.cc has the engine.)"""
import os
import re
import resource
import subprocess
import time

from harness import BUILD, FEIGN, TOP, Tmp, feign, main, refuses

SHIPPED = os.path.join(TOP, "examples", "git-clone.strace.gz")


def made_up(tmp, streams, calls):
    """A trace of `streams` processes, all alive at once, that write to files of their own."""
    name = os.path.join(tmp, "t.strace")
    with open(name, "w", encoding="ascii") as out:
        t = 1795229220.0
        for call in ['openat(AT_FDCWD, "/f{}", O_RDWR|O_CREAT, 0644) = 3'] + ['pwrite64(3, "x"..., 100, 0) = 100'] * calls:
            for s in range(streams):
                out.write(f"{100 + s} {t:.6f} {call.format(s)} <0.000001>\n")
                t += 0.000010
    return name


def test_timed_tells_how_late_every_call_began():
    for pace in ("timed,scale=0.1", "timed,scale=0"):
        with Tmp() as root:
            r = feign("replay", SHIPPED, "--root", root, "--pace", pace, "--json").json()
            assert r["pace"] == "timed" and r["mismatched"] == 0, r["mismatches"]
            late = r["lateness"]
            assert late["count"] == r["replayed"] - r["emulated"] == sum(row["count"] for row in late["histogram"]), late
            assert sum(s["lateness"]["count"] for s in r["streams"] if "lateness" in s) == late["count"]
    with Tmp() as root:
        assert "lateness" not in feign("replay", SHIPPED, "--root", root, "--json").json()


def test_streams_share_threads_when_told_to():
    processors = len(os.sched_getaffinity(0))
    with Tmp() as tmp:
        trace = made_up(tmp, 20, 5)
        for options, workers in ((("--order", "stream"), 20), (("--order", "stream", "--streams-per-core", "2"), 2 * processors),
                                 (("--pace", "think,scale=0", "--streams-per-core", "1", "--pin"), processors), ((), 1)):
            with Tmp() as root:
                r = feign("replay", trace, "--root", root, "--json", *options).json()
                assert r["workers"] == min(20, workers), (options, r["workers"])
                assert r["replayed"] == 120 and r["mismatched"] == 0, (options, r)
                assert sum(s["activities"] for s in r["streams"]) == 120


def test_awake_says_so_where_it_cannot_be():
    with Tmp() as root:
        r = feign("replay", SHIPPED, "--root", root, "--pace", "think,scale=0.1", "--compute", "awake", "--json")
        assert r.json()["mismatched"] == 0
        allowed = os.access("/dev/cpu_dma_latency", os.W_OK)
        assert ("processors may sleep deeply" in r.err) != allowed, r.err


def test_timed_keeps_processors_awake_where_it_may():
    device = "/dev/cpu_dma_latency"
    for compute, holds in (([], os.access(device, os.W_OK)), (["--compute", "hybrid"], False)):
        with Tmp() as tmp:
            trace, root = os.path.join(tmp, "t.strace"), os.path.join(tmp, "root")
            os.mkdir(root)
            with open(trace, "w", encoding="ascii") as out:
                out.write('100 1795229210.0 mkdir("/a", 0755) = 0 <0.000001>\n100 1795229210.6 mkdir("/b", 0755) = 0 <0.000001>\n')
            seen = False
            with subprocess.Popen([FEIGN, "replay", trace, "--root", root, "--pace", "timed", *compute], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as run:
                while run.poll() is None:
                    try:
                        fds = f"/proc/{run.pid}/fd"
                        seen = seen or any(os.readlink(f"{fds}/{fd}") == device for fd in os.listdir(fds))
                    except OSError:
                        pass  # a descriptor, or all of it, is gone
                    time.sleep(0.01)
                assert run.returncode == 0 and "sleep deeply" not in run.stderr.read()
            assert seen == holds, compute


def test_what_computed_keeps_a_processor_busy_and_what_slept_does_not():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "t.strace")
        with open(trace, "w", encoding="ascii") as out:
            out.write('100 1795229210.0 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT, 0644) = 3 <0.000001>\n'
                      "100 1795229210.000010 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=600000000}, NULL) = 0 <0.600000>\n"
                      '100 1795229210.600020 pwrite64(3, "x"..., 100, 0) = 100 <0.000001>\n'
                      '100 1795229211.200020 pwrite64(3, "x"..., 100, 0) = 100 <0.000001>\n')
        assert feign("convert", trace, tmp + "/t.txt").status == 0
        with open(tmp + "/t.txt", encoding="utf-8") as f:
            assert [" [asleep]" in line for line in f if " pwrite64(" in line] == [True, False]
        used = {}
        own = os.getpriority(os.PRIO_PROCESS, 0)
        try:  # whoever else runs here is to take no processor from what spins
            os.setpriority(os.PRIO_PROCESS, 0, -20)
        except PermissionError:
            pass
        try:
            for compute in ("hybrid", None, "spin") * 2:
                before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                with Tmp() as root:
                    r = feign("replay", trace, "--root", root, "--pace", "think", "--json", *(["--compute", compute] if compute else [])).json()
                    assert r["mismatched"] == 0 and r["seconds"] >= 1.1, r
                spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
                used[compute] = min(used.get(compute, spent), spent)
        finally:
            os.setpriority(os.PRIO_PROCESS, 0, own)
        # Seconds of a processor, on a machine that may be busy with other things.
        assert used["hybrid"] + 0.2 < used[None] < used["spin"] - 0.2, used


def test_one_stream_has_no_sections_about_several():
    with Tmp() as tmp, Tmp() as root:
        text = feign("replay", made_up(tmp, 1, 5), "--root", root, "--order", "stream").out
        assert not re.search("by stream|at a time|waited|critical path|threads", text), text


def test_waits_are_told_by_rule_and_the_critical_path_leads_to_the_end():
    with Tmp() as root:
        run = ("replay", SHIPPED, "--root", root, "--pace", "think,scale=0.2")
        r = feign(*run, "--json").json()
        assert {w["rule"] for w in r["waits"]} == {"trace"}, r["waits"]
        path = r["critical_path"]
        assert path["complete"] and path["steps"] > 1, path
        assert path["seconds"] > 0.5 * r["seconds"], (path["seconds"], r["seconds"])
        assert all(step["from_seconds"] <= step["to_seconds"] for step in path["longest"])
        assert len(r["concurrency"]) == 10 and max(r["concurrency"]) > 0, r["concurrency"]
        text = feign(*run).out
        for part in ("by stream", "streams in calls at a time", "streams waited for each other", "critical path: "):
            assert part in text, (part, text)


def test_every_wait_is_written_down_with_whom_and_why():
    with Tmp() as tmp, Tmp() as root:
        plan, waits = os.path.join(tmp, "p.feign"), os.path.join(tmp, "waits")
        feign("convert", SHIPPED, plan)
        r = feign("replay", plan, "--root", root, "--order", "depend", "--pace", "think,scale=0.2", "--waits", waits, "--json").json()
        text = os.path.join(tmp, "p.txt")
        feign("convert", plan, text)
        calls = {}
        with open(text, encoding="utf-8") as f:
            for line in f:
                number, _, stream, call = re.match(r"(\d+) (\S+) \[(\d+) .*?\] (\w+)", line).groups()
                calls[int(number)] = (stream, call)
        with open(waits, encoding="utf-8") as f:
            head, *lines = [line.rstrip("\n").split("\t") for line in f]
        assert head[:7] == ["since_us", "waited_us", "stream", "call", "for_stream", "for_call", "rule"], head
        rules = {w["rule"]: w["count"] for w in r["waits"]}
        assert len(lines) == sum(rules.values()) and {line[6] for line in lines} == set(rules), (len(lines), rules)
        for line in lines:
            for stream, call in ((line[2], line[3]), (line[4], line[5])):
                number, name = call.split()[:2]
                assert calls[int(number)] == (stream, name), line
            assert int(line[5].split()[0]) < int(line[3].split()[0]), line
        total = sum(float(line[1]) for line in lines) / 1e6
        assert abs(total - sum(w["seconds"] for w in r["waits"])) < 0.05 * total + 1e-3, (total, r["waits"])
        refuses("replay", plan, "--root", root, "--waits", tmp + "/no/such", text="no/such")


def test_a_replayer_that_fails_ends_with_a_report():
    fails = os.path.join(BUILD, "tests", "plugins", "fails-late.so")
    with Tmp() as tmp:
        trace = made_up(tmp, 8, 50)
        for options in ((), ("--order", "stream"), ("--pace", "think,scale=0")):
            r = refuses("replay", trace, "--replayer", fails, "--json", *options, text="t.strace:[0-9]+: fails-late: the device is gone")
            report = r.json()
            assert report["interrupted"] and "the device is gone" in report["stopped_by"], report
            assert 0 < report["activities"] < 408, report["activities"]


def test_wrong_settings_are_told_alike_everywhere():
    wanted = {"pace": ("timely", "timed,scale=-1", "think,scale=", "afap,scale=2", "afap, think[,scale=FACTOR] or timed[,scale=FACTOR] (0 to 1e9)"),
              "order": ("random", "trace, depend or stream"), "compute": ("guess", "hybrid, sleep, spin, awake or busy"),
              "content": ("ratio=0", "sparse, zeros, random or ratio=N"), "streams-per-core": ("0", "4097", "many", "a number from 1 to 4096"),
              "max-bytes": ("0", "much", "bytes, such as 500m or 2GiB"), "pin": ("perhaps", "yes or no")}
    with Tmp() as tmp:
        name, lab = os.path.join(tmp, "p.yaml"), os.path.join(tmp, "l.yaml")
        for setting, (*values, want) in wanted.items():
            for value in values:
                said = f"{setting}: \"{value}\": want {want}"
                if setting != "pin":
                    refuses("replay", SHIPPED, "--root", tmp, f"--{setting}={value}", text="^feign: --" + re.escape(said))
                with open(name, "w", encoding="ascii") as out:
                    out.write(f"{setting}: \"{value}\"\nplugins: []\n")
                refuses("run", name, text=rf"p\.yaml:1:{len(setting) + 3}: " + re.escape(said))
                with open(lab, "w", encoding="ascii") as out:
                    out.write(f"trace: {SHIPPED}\nroot: {tmp}\nvariants:\n  a: {{{setting}: \"{value}\"}}\n")
                refuses("lab", lab, text=rf"l\.yaml:4:{len(setting) + 9}: " + re.escape(said))


main(globals())
