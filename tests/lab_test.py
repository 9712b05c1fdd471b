#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feign lab: the file, the runs, the results that survive a crash, the statistics, the search, the protocol."""
import http.server
import importlib.util
import json
import math
import os
import queue
import re
import shlex
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time

from harness import FEIGN, TOP, Skip, Tmp, feign, main, refuses

TRACE = """100 1700000000.000000 openat(AT_FDCWD, "/data/a", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>
100 1700000000.001000 write(3, "x"..., 4096) = 4096 <0.000010>
100 1700000000.002000 pread64(3, "x"..., 4096, 0) = 4096 <0.000010>
100 1700000000.%06d close(3) = 0 <0.000010>
100 1700000000.%06d +++ exited with 0 +++
"""


def trace(folder, name="t.strace", last_us=3000):
    """A trace of four calls; with pace think it takes about last_us microseconds."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(TRACE % (last_us, last_us))
    return path


def lab(folder, text, name="x.yaml"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("TRACE", os.path.join(folder, "t.strace")).replace("ROOT", os.path.join(folder, "root")))
    os.makedirs(os.path.join(folder, "root"), exist_ok=True)
    if not os.path.exists(os.path.join(folder, "t.strace")):
        trace(folder)
    return path


SMALL = """traces: TRACE
roots: {path: ROOT, drop-caches: no}
repeats: 6
variants:
  baseline: {pace: think}
  same: {pace: think}
  half: {pace: "think,scale=0.2"}
"""
LONG = SMALL.replace("repeats: 6", "repeats: 40")


def results_of(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def runs_so_far(path):
    """How many runs a lab that may just be adding one has written, None where they cannot be told now."""
    try:
        return len(results_of(path)["runs"])
    except (FileNotFoundError, json.JSONDecodeError):
        return None


# ---------------------------------------------------------------- runs


def test_a_lab_measures_its_variants_against_the_baseline():
    with Tmp() as t:
        trace(t, last_us=200000)
        path = lab(t, SMALL)
        r = feign("lab", path, "--json")
        assert r.status == 0, r.err
        rows = {row["label"]: row for row in r.json()["groups"][0]["rows"]}
        assert list(rows) == ["baseline", "same", "half"] and rows["baseline"]["baseline"]
        assert rows["half"]["comparison"]["verdict"] == "faster", rows["half"]
        assert rows["half"]["comparison"]["ratio"] < 0.5
        low, high = rows["same"]["comparison"]["interval"]
        assert low <= rows["same"]["comparison"]["ratio"] <= high
        assert all(row["runs"] == 6 and row["failed"] == 0 for row in rows.values())
        text = feign("lab", "report", os.path.join(t, "x.results.json"))
        assert text.status == 0 and re.search(r"half .*% less time", text.out), text.out
        document = results_of(os.path.join(t, "x.results.json"))
        assert document["schema"] == "feign-lab/1" and len(document["runs"]) == 18
        assert not os.path.exists(os.path.join(t, "x.results.json.lock"))


def test_a_page_that_cannot_be_written_is_told_before_the_first_run():
    with Tmp() as t:
        path = lab(t, SMALL)
        for option in "--html", "--output":
            for where, why in (os.path.join(t, "none", "x"), "No such file or directory"), (os.path.join(t, "root"), "Is a directory"):
                refuses("lab", path, option, where, text=f"write {where}: {why}")
                assert not os.path.exists(os.path.join(t, "x.results.json")), option


def test_runs_are_interleaved_in_an_order_that_the_seed_gives():
    with Tmp() as t:
        path = lab(t, SMALL.replace("repeats: 6", "repeats: 8"))
        orders = []
        for seed, name in (("5", "a"), ("5", "b"), ("6", "c")):
            out = os.path.join(t, name + ".json")
            assert feign("lab", path, "--seed", seed, "--results", out).status == 0
            runs = results_of(out)["runs"]
            orders.append([run["label"] for run in runs])
            for i in range(0, len(runs), 3):
                assert sorted(r["label"] for r in runs[i:i + 3]) == ["baseline", "half", "same"]
                assert {r["repeat"] for r in runs[i:i + 3]} == {i // 3 + 1}
        assert orders[0] == orders[1] != orders[2]
        assert len({tuple(orders[0][i:i + 3]) for i in range(0, 24, 3)}) > 1


def test_killed_and_interrupted_labs_go_on_where_they_were():
    with Tmp() as t:
        trace(t, last_us=60000)
        path, out = lab(t, LONG), os.path.join(t, "x.results.json")
        for how in (signal.SIGKILL, signal.SIGINT, signal.SIGHUP):
            before = runs_so_far(out) or 0
            p = subprocess.Popen([FEIGN, "lab", path, "-q"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and (runs_so_far(out) or 0) < before + 3:
                time.sleep(0.02)
            p.send_signal(how)
            err = p.communicate(timeout=30)[1].decode()
            assert p.returncode == (-9 if how == signal.SIGKILL else 1), (p.returncode, err)
            assert "Sanitizer" not in err, err
            runs = results_of(out)["runs"]
            assert before + 3 <= len(runs) < 120, len(runs)
            assert all(r["status"] == "ok" for r in runs), "an interrupted run is no run"
        lab(t, SMALL)  # the same with fewer repeats
        r = feign("lab", path, "--json")
        assert r.status == 0, r.err
        assert "goes on from the" in r.err
        keys = [(run["cell"], run["repeat"]) for run in results_of(out)["runs"]]
        assert len(keys) == len(set(keys)), "nothing is done twice"


def fits(value, schema, of, at="$"):
    """Raises where a JSON value does not fit a JSON Schema, of as much of that language as docs/lab.schema.json uses."""
    known = {"$schema", "$ref", "$defs", "title", "description", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
             "minimum", "pattern", "oneOf"}
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        return fits(value, of["$defs"][schema["$ref"].removeprefix("#/$defs/")], of, at)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}
    wanted = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    assert not wanted or any(isinstance(value, kinds[k]) and (k == "boolean" or not isinstance(value, bool)) for k in wanted), (at, wanted, value)
    assert "enum" not in schema or value in schema["enum"], (at, schema["enum"], value)
    assert "const" not in schema or value == schema["const"], (at, schema["const"], value)
    assert "minimum" not in schema or value >= schema["minimum"], (at, value)
    assert "pattern" not in schema or re.search(schema["pattern"], value), (at, value)
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), (at, set(schema["required"]) - set(value))
        for key, of_key in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            assert below is not False, f"{at}: there is \"{key}\""
            if below is not True:
                fits(of_key, below, of, f"{at}.{key}")
    if isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), (at, len(value))
        for i, item in enumerate(value):
            fits(item, schema.get("items", {}), of, f"{at}[{i}]")
    return None


def test_what_a_lab_writes_fits_the_schema_in_the_docs():
    with open(os.path.join(TOP, "docs", "lab.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    with Tmp() as t:
        path, out = lab(t, SMALL + "  fails: {with: {filter: {kind: read}}}\n  shaken: {with: {jitter: {max: [1us, 2us]}}}\nrequire: 100%\n"
                        "curves: {name: elsewhere, variant: shaken, parameter: max, baseline: 2s, points: {1us: 1s, 2us: 1500ms}}\n"), os.path.join(t, "x.results.json")
        r = feign("lab", path, "--json", "--html", os.path.join(t, "x.html"))
        assert r.status == 1, r.err
        assert feign("lab", path, "--search", "--budget", "8", "-q").status == 0
        served(path, [{"variant": "shaken", "parameters": {"max": "3us"}}])
        fits(r.json(), schema["$defs"]["summary"], schema)
        document = results_of(out)
        fits(document, schema["$defs"]["results"], schema)
        assert document["lab"]["curves"][0]["points"] == [["1us", 0.5], ["2us", 0.75]]
        assert {run["by"] for run in document["runs"]} >= {"lab", "timeline", "serve"} and {run["status"] for run in document["runs"]} == {"ok", "failed"}
        for damage in ({"status": "good"}, {"repeat": -1}, {"speed": 1}):  # the schema can say no
            try:
                fits({**document, "runs": [{**document["runs"][0], **damage}]}, schema["$defs"]["results"], schema)
            except AssertionError:
                continue
            raise AssertionError(f"{damage} fits")


def test_a_torn_end_is_done_again_and_damage_elsewhere_is_an_error():
    with Tmp() as t:
        path, out = lab(t, SMALL), os.path.join(t, "x.results.json")
        assert feign("lab", path).status == 0
        with open(out, "rb") as f:
            whole = f.read()
        last = whole.rindex(b"\n{")
        for cut in (last + 1, last + 30, len(whole) - 6, len(whole) - 2):
            with open(out, "wb") as f:
                f.write(whole[:cut] + (b"\0" * 100 if cut == last + 30 else b""))
            r = feign("lab", path)
            assert r.status == 0 and "torn" in r.err, r.err
            assert len(results_of(out)["runs"]) == 18
        lines = whole.split(b"\n")
        lines[6] = lines[6][:50]
        with open(out, "wb") as f:
            f.write(b"\n".join(lines))
        refuses("lab", path, text=r"x\.results\.json:7: is damaged")
        for kind in (whole.replace(b'"histogram":[', b'"histogram":["x",'), whole.replace(b'"variant":"half"', b'"variant":[7]'),
                     whole.replace(b'"parameters":{}', b'"parameters":"none"'), whole.replace(b'"ops":{', b'"ops":[],"opz":{'), whole.replace(b'"fidelity":', b'"fidelity":"all","f":'),
                     whole.replace(b'"count":', b'"count":"many","c":'), whole.replace(b'"replayed":', b'"replayed":-1,"r":')):
            with open(out, "wb") as f:
                f.write(kind)
            r = feign("lab", "report", out, "--html", os.path.join(t, "x.html"), "--json")
            assert r.status in (0, 2) and (r.status == 0 or "x.results.json" in r.err) and "fault" not in r.err, r.err
        for bad in (b"", b"{}", b"\xff\xfe", whole[:60]):
            with open(out, "wb") as f:
                f.write(bad)
            refuses("lab", "report", out, text=r"x\.results\.json:\d: ")


def test_a_second_lab_on_the_same_results_is_refused():
    with Tmp() as t:
        trace(t, last_us=300000)
        path, out = lab(t, LONG), os.path.join(t, "x.results.json")
        p = subprocess.Popen([FEIGN, "lab", path, "-q"], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not os.path.exists(out):
                time.sleep(0.02)
            refuses("lab", path, text="another `feign lab`")
        finally:
            p.send_signal(signal.SIGINT)
            p.wait(timeout=30)


def test_results_are_kept_in_a_regular_file():
    with Tmp() as t:
        path = lab(t, SMALL)
        os.mkfifo(fifo := os.path.join(t, "fifo"))
        os.symlink("/dev/zero", zero := os.path.join(t, "zero"))  # whose lock is here, not in /dev
        os.mkdir(folder := os.path.join(t, "folder"))
        before = sorted(os.listdir(t))
        for more in ([], ["--dry-run"]):
            for name in fifo, zero:
                refuses("lab", path, "--results", name, *more, text=f"{name}: is no regular file, want a file for results", timeout=60)
            refuses("lab", path, "--results", folder, *more, text=f"{folder}: is a directory, want a file for results")
        refuses("lab", path, "--results", os.path.join(t, "no", "r.json"), text="No such file or directory: want --results FILE where it may be written")
        assert sorted(os.listdir(t)) == before, os.listdir(t)


def test_a_changed_lab_says_which_runs_no_longer_belong():
    with Tmp() as t:
        path = lab(t, SMALL)
        assert feign("lab", path).status == 0
        lab(t, SMALL.replace("0.2", "0.3"))
        r = feign("lab", path, "--json")
        assert r.status == 0, r.err
        assert re.search(r'6 runs of "half" no longer belong', r.err), r.err
        assert r.json()["no_longer_in_the_lab"] == {"half": 6}
        assert {row["label"]: row["runs"] for row in r.json()["groups"][0]["rows"]} == {"baseline": 6, "same": 6, "half": 6}
        # Another trace under the same name is another lab.
        trace(t, last_us=4000)
        r = feign("lab", path, "--json")
        assert r.status == 0 and '12 runs of "half"' in r.err and '6 runs of "baseline"' in r.err, r.err


def test_a_variant_that_says_the_same_in_other_words_keeps_its_runs():
    with Tmp() as t:
        few = SMALL.replace("repeats: 6", "repeats: 2") + '  cut: {with: "filter,drop%s,op=fsync"}\n'
        path = lab(t, few % "")
        assert feign("lab", path).status == 0
        lab(t, few % "=yes")
        r = feign("lab", path, "--json")
        assert r.status == 0 and r.json()["no_longer_in_the_lab"] == {} and "no longer belong" not in r.err, (r.out, r.err)


def test_failed_runs_are_shown_and_not_counted():
    with Tmp() as t:
        path = lab(t, SMALL + "  fails: {with: {filter: {kind: read}}}\n" + "require: 100%\n")
        r = feign("lab", path, "--json")
        assert r.status == 1, r.err
        rows = {row["label"]: row for row in r.json()["groups"][0]["rows"]}
        assert rows["fails"]["failed"] == 6 and rows["fails"]["runs"] == 0 and "comparison" not in rows["fails"]
        assert "fidelity" in rows["fails"]["why"], rows["fails"]
        assert r.err.count("run failed") == 1, "said once"
        assert "6 of its runs failed, not counted: fidelity" in feign("lab", "report", os.path.join(t, "x.results.json")).out


def test_a_run_that_fails_first_is_done_again_when_the_lab_goes_on():
    with Tmp() as t:
        gate = os.path.join(t, "gate")
        path = lab(t, SMALL.replace("drop-caches: no", f"drop-caches: no, settle: 'test -e {gate}'"))
        r = feign("lab", path)
        assert r.status == 1 and "exit status 1" in r.err, r.err
        open(gate, "w").close()
        r = feign("lab", path, "--json")
        assert r.status == 0, r.err
        assert all(row["runs"] == 6 and row["failed"] == 0 and row["failed_before"] == 6 for row in r.json()["groups"][0]["rows"])


def test_a_run_that_fails_each_time_it_is_done_did_not_go_well():
    with Tmp() as t:
        path = lab(t, SMALL.replace("drop-caches: no", "drop-caches: no, settle: 'false'"))
        for _ in range(2):
            r = feign("lab", path, "--json")
        assert r.status == 1
        assert all(row["runs"] == 0 and row["failed"] == 6 and row["failed_before"] == 0 for row in r.json()["groups"][0]["rows"])
        assert "when done again" not in feign("lab", "report", os.path.join(t, "x.results.json")).out


def test_what_a_dry_run_prints_is_what_a_shell_reads():
    with Tmp() as t:
        path = lab(t, SMALL.replace("drop-caches: no", """drop-caches: no, settle: "echo 'two  words' $HOME" """))
        r = feign("lab", path, "--dry-run")
        words = shlex.split(r.out.partition("\n  feign ")[2].partition(" done\n")[0].rpartition("\n")[0])
        assert words[words.index("--before") + 1] == "{ echo 'two  words' $HOME\n}", r.out


def test_a_run_that_hangs_is_ended():
    with Tmp() as t:
        path = lab(t, SMALL.replace("repeats: 6", "repeats: 1\ntimeout: 300ms").replace("drop-caches: no", "drop-caches: no, settle: 'sleep 60'"))
        begin = time.monotonic()
        r = feign("lab", path)
        assert r.status == 1 and "timeout" in r.err, r.err
        assert time.monotonic() - begin < 30


def test_a_command_that_fails_is_quoted():
    with Tmp() as t:
        r = feign("lab", lab(t, SMALL.replace("repeats: 6", "repeats: 1").replace("drop-caches: no", "drop-caches: no, settle: 'exit 4'")))
        assert r.status == 1 and "{ exit 4 }" in r.err and "exit status 4" in r.err, r.err


def test_set_up_and_tear_down_surround_the_runs_and_caches_are_dropped():
    with Tmp() as t:
        notes = os.path.join(t, "notes")
        root = f"{{path: ROOT, name: disk, setup: 'echo setup $FEIGN_ROOT >> {notes}', teardown: 'echo teardown >> {notes}', drop-caches: 'echo drop >> {notes}', settle: 'echo settle >> {notes}'}}"
        path = lab(t, SMALL.replace("{path: ROOT, drop-caches: no}", root).replace("repeats: 6", "repeats: 1"))
        for _ in range(2):  # the second one has nothing to set up for
            assert feign("lab", path).status == 0
        with open(notes, encoding="utf-8") as f:
            said = f.read().split("\n")
        assert said == [f"setup {os.path.join(t, 'root')}"] + ["drop", "settle"] * 3 + ["teardown", ""], said
        lab(t, SMALL.replace("drop-caches: no", "drop-caches: files").replace("repeats: 6", "repeats: 1"))
        assert feign("lab", path, "--results", os.path.join(t, "2.json")).status == 0
        assert {run["caches"] for run in results_of(os.path.join(t, "2.json"))["runs"]} == {"files"}
        lab(t, SMALL.replace("drop-caches: no", "setup: 'echo no luck >&2; exit 3'"))
        refuses("lab", path, "--results", os.path.join(t, "3.json"), text=r"setup of root .*exit status 3: no luck")


def test_runs_before_the_first_are_not_counted():
    with Tmp() as t:
        notes = os.path.join(t, "notes")
        path = lab(t, SMALL.replace("drop-caches: no", f"drop-caches: no, settle: 'echo run >> {notes}'").replace("repeats: 6", "repeats: 1\nwarm-up: 2"))
        for _ in range(2):  # nothing is warmed up when there is nothing to do
            r = feign("lab", path, "--json")
            assert r.status == 0 and [row["runs"] for row in r.json()["groups"][0]["rows"]] == [1, 1, 1], r.err
            with open(notes, encoding="utf-8") as f:
                assert f.read() == "run\n" * 5
        assert len(results_of(os.path.join(t, "x.results.json"))["runs"]) == 3
        refuses("lab", lab(t, SMALL + "warm-up: yes\n"), text=r"x\.yaml:8:10: warm-up: \"yes\": want a number from 0")


def test_another_root_is_not_set_up():
    with Tmp() as t:
        path = lab(t, SMALL.replace("drop-caches: no", "drop-caches: no, setup: 'false', teardown: 'false'").replace("repeats: 6", "repeats: 1"))
        refuses("lab", path, text="setup of root")
        os.mkdir(os.path.join(t, "other"))
        r = feign("lab", path, "--root", os.path.join(t, "other"))
        assert r.status == 0, r.err


def test_caches_that_may_not_be_dropped_are_said_to_be_warm():
    if os.access("/proc/sys/vm/drop_caches", os.W_OK) and (os.geteuid() != 0 or not shutil.which("setpriv")):
        raise Skip("caches may be dropped here, and there is no setpriv to give up that right")
    with Tmp() as t:
        path = lab(t, SMALL.replace("drop-caches: no", "drop-caches: all").replace("repeats: 6", "repeats: 1"))
        command = [FEIGN, "lab", path]
        if os.geteuid() == 0:
            for folder, dirs, files in os.walk(t):
                for name in ["."] + files:
                    os.chown(os.path.join(folder, name), 65534, 65534)
            command = ["setpriv", "--reuid=65534", "--clear-groups"] + command
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True, env={**os.environ, "TMPDIR": t})
        if p.returncode in (126, 127):
            raise Skip("another user may not run this build")
        assert p.returncode == 0 and p.stderr.count("could not be dropped") == 1, p.stderr
        assert {run["caches"] for run in results_of(os.path.join(t, "x.results.json"))["runs"]} == {"files"}


def test_lists_ranges_and_points_give_configurations():
    with Tmp() as t:
        path = lab(t, """traces: TRACE
roots: ROOT
variants:
  - baseline
  - name: list
    with: [{jitter: {share: [0.1, 0.5], seed: {from: 1, to: 3, step: 1}, max: 1ms}}]
  - name: factor
    with: {jitter: {max: {from: 1ms, to: 10ms, factor: 3}}}
  - name: sizes
    max-bytes: {from: 1MiB, to: 5m, factor: 2}
  - name: points
    with: [{jitter: {share: 0.2}}, filter]
    points: [{share: 0.1, max: 1ms}, {share: 0.9, jitter.max: 7ms}]
  - name: pace
    pace: [afap, think]
""")
        r = feign("lab", path, "--dry-run")
        assert r.status == 0, r.err
        labels = re.findall(r"^(\S.*), t\.strace on ", r.out, re.M)
        assert labels == ["baseline"] + [f"list share={s} seed={n}" for s in ("0.1", "0.5") for n in (1, 2, 3)] + [
            "factor max=1ms", "factor max=3ms", "factor max=9ms", "sizes max-bytes=1MiB", "sizes max-bytes=2MiB", "sizes max-bytes=4MiB",
            "points share=0.1 max=1ms", "points share=0.9 max=7ms", "pace pace=afap", "pace pace=think"], labels
        assert "--with jitter,share=0.9,max=7ms --with filter" in r.out, r.out
        assert not os.path.exists(os.path.join(t, "x.results.json"))


def test_every_mistake_in_the_file_names_its_place_and_what_was_wanted():
    with Tmp() as t:
        for text, said in [
            ("", "is empty|want a map"),
            ("traces: TRACE\nroots: ROOT\n", "there is no `variants`"),
            ("traces: TRACE\nvariants: [a]\n", "there is no `roots`"),
            ("roots: ROOT\nvariants: [a]\n", "there is no `traces`"),
            ("traces: [", r"x\.yaml:\d+:\d+: .*want YAML"),
            (SMALL + "speed: 3\n", r"x\.yaml:8:1: unknown key \"speed\": want traces"),
            (SMALL + "repeats: 3\n", r"x\.yaml:8:1: \"repeats\" is there twice"),
            (SMALL.replace("repeats: 6", "repeats: six"), r"x\.yaml:3:10: repeats: \"six\": want a number from 1"),
            (SMALL.replace("repeats: 6", "repeats: 0"), "want a number from 1"),
            (SMALL.replace("repeats: 6", "repeats: -1"), "want a number from 1"),
            (SMALL.replace("repeats: 6", "require: 200%"), "require: \"200%\": want a share"),
            (SMALL.replace("repeats: 6", "timeout: 5"), "timeout: \"5\": want a time"),
            (SMALL.replace("repeats: 6", "baseline: nobody"), "baseline: \"nobody\": want one of baseline, same, half"),
            (SMALL.replace("TRACE", "/nowhere/t"), r"x\.yaml:1:9: .*/nowhere/t"),
            (SMALL.replace("TRACE", "/dev/null"), r"x\.yaml:1:9: "),
            (SMALL.replace("traces: TRACE", "traces: {file: TRACE, ranks: a-b}"), r"x\.yaml:1:\d+: ranks: \"a-b\": want numbers and ranges"),
            (SMALL.replace("traces: TRACE", "traces: {file: TRACE, ranks: ''}"), r"ranks: \"\": want numbers"),
            (SMALL.replace("traces: TRACE", "traces: {file: TRACE, provider: nobody}"), r"x\.yaml:1:\d+: provider: .*\"nobody\".*strace"),
            (SMALL.replace("ROOT", '"a\\0b"'), r"x\.yaml:2:\d+: a NUL byte"),
            (SMALL.replace("ROOT", "/nowhere"), r"x\.yaml:2:15: root /nowhere.*want a directory"),
            (SMALL.replace("drop-caches", "drop"), r"x\.yaml:2:\d+: root: unknown key \"drop\""),
            (SMALL.replace("pace: think}", "pace: thonk}", 1), r"x\.yaml:5:20: pace: \"thonk\": want afap"),
            (SMALL + "  more: {with: {fliter: {kind: read}}}\n", r"x\.yaml:8:\d+: .*fliter.*"),
            (SMALL + "  more: {with: {filter: {kidn: read}}}\n", r"x\.yaml:8:\d+: filter: unknown option \"kidn\""),
            (SMALL + "  more: {with: {filter: {kind: [read, nonsense]}}}\n", r"x\.yaml:8:\d+: filter: .*nonsense"),
            (SMALL + "  more: {with: {jitter: {seed: [1, 1]}}}\n", "\"1\" is there twice"),
            (SMALL + "  more: {with: {jitter: {seed: {from: 1, to: 5}}}}\n", "want {from, to, step or factor}"),
            (SMALL + "  more: {with: {jitter: {seed: {from: 5, to: 1, step: 1}}}}\n", "to 1 is below from 5"),
            (SMALL + "  more: {with: {jitter: {seed: {from: 1, to: 5, step: 0}}}}\n", "step \"0\": want more than 0"),
            (SMALL + "  more: {with: {jitter: {seed: {from: 1, to: 5, factor: 1}}}}\n", "factor \"1\": want more than 1"),
            (SMALL + "  more: {with: {jitter: {seed: {from: 1, to: 1e9, step: 1}}}}\n", "more than 10000 values"),
            (SMALL + "  more: {with: {jitter: {seed: {from: 1, to: 5ms, step: 1}}}}\n", "want two numbers, two sizes or two times"),
            (SMALL + "  more: {with: [jitter], points: [{nothing: 1}]}\n", r"x\.yaml:8:\d+: jitter: unknown option \"nothing\""),
            (SMALL + "  more: {with: [jitter], points: [{filter.kind: read}]}\n", r"points: \"filter.kind\": is of no plug-in in `with` \(there are: jitter\)"),
            (SMALL + "  more: {points: []}\n", "points: want at least one"),
            (SMALL + "  same2: {paces: think}\n", "unknown key \"paces\""),
            (SMALL.replace("traces: TRACE", "traces: [TRACE, TRACE]"), "is there twice"),
            (SMALL + "curves: {name: a, variant: nobody, parameter: max, baseline: 1s, points: {1: 1s}}\n", r"x\.yaml:8:\d+: curve: there is no variant \"nobody\""),
            (SMALL + "  v: {with: {jitter: {seed: [1, 2]}}}\ncurves: {name: a, variant: v, parameter: max, baseline: 1s, points: {1: 1s}}\n", "has no parameter \"max\"; it has seed"),
            (SMALL + "  v: {with: {jitter: {seed: [1, 2]}}}\ncurves: {name: a, variant: v, parameter: seed, baseline: 1s, points: {1: 1}}\n", "points: 1: \"1\": want a time"),
        ]:
            path = lab(t, text)
            r = refuses("lab", path, text=said)
            assert "x.yaml" in r.err, (text, r.err)
            assert not os.path.exists(os.path.join(t, "x.results.json")), text
        refuses("lab", os.path.join(t, "none.yaml"), text="none.yaml")
        refuses("lab", lab(t, SMALL.replace("TRACE", "none.strace")), text=r"none\.strace: No such file .*relative to where feign runs, here /")
        refuses("lab", lab(t, SMALL), "--repeats", "x", text="--repeats x: want a number")


def test_several_traces_each_have_a_directory_of_their_own():
    with Tmp() as t:
        other = trace(t, "u.strace", 5000)
        path = lab(t, SMALL.replace("traces: TRACE", f"traces: [TRACE, {{name: other, file: {other}}}]").replace("repeats: 6", "repeats: 1"))
        r = feign("lab", path, "--json")
        assert r.status == 0, r.err
        assert [g["trace"] for g in r.json()["groups"]] == ["t.strace", "other"]
        assert sorted(os.listdir(os.path.join(t, "root"))) == ["other", "t.strace"]


# ---------------------------------------------------------------- statistics


class Splitmix:
    """The documented generator, in Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) * n) >> 64


def quantile(values, p):
    at = p * (len(values) - 1)
    i = int(at)
    return values[-1] if i + 1 >= len(values) else values[i] + (at - i) * (values[i + 1] - values[i])


# Student's t at 0.975, from printed tables, by degrees of freedom.
T975 = {5: 2.570582, 7: 2.364624, 9: 2.262157, 19: 2.093024}


def bootstrap(logs, seed):
    """The interval as docs/lab.md describes it, written down a second time."""
    n, random = len(logs), Splitmix(seed)
    means = sorted(sum(logs[random.below(n)] for _ in range(n)) / n for _ in range(10000))
    q = statistics.NormalDist().cdf(-T975[n - 1] * math.sqrt(n / (n - 1)))
    return math.exp(quantile(means, q)), math.exp(quantile(means, 1 - q))


def made_up(path, variants, seed=1, failed=()):
    """Results as a lab would have written them: {label: [seconds]}, the first the baseline."""
    cells = [{"cell": f"c{i}", "trace": "t", "root": "r", "variant": label, "label": label, "parameters": {}} for i, label in enumerate(variants)]
    runs = []
    for i, (label, values) in enumerate(variants.items()):
        for repeat, seconds in enumerate(values, 1):
            run = {**cells[i], "repeat": repeat, "by": "lab", "status": "ok", "seconds": seconds, "fidelity": 1.0, "replayed": 10, "emulated": 1,
                   "bytes_read": 5, "bytes_written": 7, "ops": {}}
            if (label, repeat) in failed:
                run["status"], run["why"] = "failed", "made up"
            runs.append(run)
    head = {"version": "0", "file": "made.yaml", "seed": seed, "repeats": len(next(iter(variants.values()))), "baseline": next(iter(variants)), "cells": cells}
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"schema": "feign-lab/1",\n"lab": ' + json.dumps(head) + ',\n"runs": [\n' + ",\n".join(json.dumps(r) for r in runs) + "\n]}\n")


def test_intervals_are_what_an_independent_computation_gives():
    with Tmp() as t:
        path, random = os.path.join(t, "made.json"), Splitmix(99)
        uniform = lambda: random.below(1 << 40) / (1 << 40)
        for n, seed in ((6, 1), (8, 2), (10, 12345), (20, 7)):
            base = [1 + uniform() * 0.2 for _ in range(n)]
            variants = {"base": base, "faster": [b * (0.7 + 0.1 * uniform()) for b in base], "slower": [b * (1.2 + 0.3 * uniform()) for b in base],
                        "same": [b * (0.8 + 0.45 * uniform()) for b in base]}
            made_up(path, variants, seed)
            rows = {r["label"]: r for r in feign("lab", "report", path, "--json").json()["groups"][0]["rows"]}
            for label in ("faster", "slower", "same"):
                logs = [math.log(v / b) for v, b in zip(variants[label], base)]
                c = rows[label]["comparison"]
                low, high = bootstrap(logs, seed)
                assert math.isclose(c["ratio"], math.exp(statistics.fmean(logs)), rel_tol=1e-9)
                assert math.isclose(c["interval"][0], low, rel_tol=1e-6) and math.isclose(c["interval"][1], high, rel_tol=1e-6), (n, label, c, low, high)
                want = "faster" if high < 1 else "slower" if low > 1 else "no difference measurable"
                assert c["verdict"] == want, c
                assert math.isclose(c["resolves"], math.exp(T975[n - 1] * statistics.stdev(logs) / math.sqrt(n)) - 1, rel_tol=1e-5)
            assert math.isclose(rows["base"]["median"], statistics.median(base))
            assert rows["faster"]["comparison"]["verdict"] == "faster" and rows["slower"]["comparison"]["verdict"] == "slower"


def test_the_interval_holds_the_truth_about_95_times_in_100():
    """200 labs of 8 repeats whose true ratio is 1, noise as storage has it (long to one side)."""
    with Tmp() as t:
        path, random = os.path.join(t, "made.json"), Splitmix(4)
        noise = lambda: 1 - 0.3 * math.log(1 - random.below(1 << 40) / (1 << 40))
        variants = {"base": [1.0] * 8}
        bases = []
        for i in range(200):
            bases.append([noise() for _ in range(8)])
            variants[f"v{i}"] = [noise() / b for b in bases[-1]]
        made_up(path, variants)
        rows = feign("lab", "report", path, "--json").json()["groups"][0]["rows"][1:]
        held = sum(r["comparison"]["verdict"] == "no difference measurable" for r in rows)
        assert 182 <= held <= 198, held


def test_needed_repeats_resolve_what_was_seen_and_drift_cancels_in_pairs():
    with Tmp() as t:
        path, random = os.path.join(t, "made.json"), Splitmix(8)
        uniform = lambda: random.below(1 << 40) / (1 << 40)

        def results(n):
            base = [1 + 0.3 * i for i in range(n)]  # a machine that gets slower and slower
            made_up(path, {"base": base, "v": [b * math.exp(0.03 + 0.2 * (uniform() - 0.5)) for b in base]})
            return feign("lab", "report", path, "--json").json()["groups"][0]["rows"][1]["comparison"]
        first = results(10)
        told = results(2 * (first["repeats_needed"] or 400))
        assert told["verdict"] == "slower", (first, told)
        made_up(path, {"base": [1.0] * 8, "v": [1.0] * 8})
        same = feign("lab", "report", path, "--json").json()["groups"][0]["rows"][1]["comparison"]
        assert same["verdict"] == "no difference measurable" and same["interval"] == [1.0, 1.0]
        text = feign("lab", "report", path).out
        assert "no difference measurable" in text and "none was seen" in text, text


def test_few_repeats_and_failed_ones_are_never_called_a_difference():
    with Tmp() as t:
        path = os.path.join(t, "made.json")
        made_up(path, {"base": [1.0, 1.1, 1.2, 1.0, 1.05], "v": [0.5, 0.55, 0.6, 0.5, 0.52]})
        text = feign("lab", "report", path).out
        assert "too few repeats" in text and "5 repeats cannot exclude chance: 6 may" in text, text
        base = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07]
        made_up(path, {"base": base, "v": [b * 9 if i == 3 else b * 0.5 for i, b in enumerate(base)]}, failed={("v", 4), ("base", 1)})
        r = feign("lab", "report", path, "--json")
        assert r.status == 1, "a failed run shows in the exit status"
        row = r.json()["groups"][0]["rows"][1]
        assert row["comparison"]["pairs"] == 6 and row["failed"] == 1 and math.isclose(row["comparison"]["ratio"], 0.5)


# ---------------------------------------------------------------- search


PACES = """traces: TRACE
roots: {path: ROOT, drop-caches: no}
repeats: 6
variants:
  baseline: {pace: think}
  paced:
    pace: ["think,scale=0.9", "think,scale=0.8", "think,scale=0.7", "think,scale=0.6", "think,scale=0.1", "think,scale=1.2",
           "think,scale=1.3", "think,scale=1.4", "think,scale=1.5"]
"""


def test_a_search_finds_the_known_best_within_its_budget():
    with Tmp() as t:
        trace(t, last_us=150000)
        path = lab(t, PACES)
        for budget, least in (("40", 24), ("60", 40)):
            out = os.path.join(t, f"{budget}.json")
            r = feign("lab", path, "--search", "--budget", budget, "--json", "--results", out)
            assert r.status == 0, r.err
            found = r.json()
            assert found["best"]["label"] == "paced pace=think,scale=0.1", found["best"]
            assert found["best"]["parameters"] == {"pace": "think,scale=0.1"}
            assert least <= found["runs"] <= int(budget) and found["runs"] == len(results_of(out)["runs"]), found["runs"]
            sizes = [len(x["configurations"]) for x in found["rounds"]]
            assert sizes == [9, 3, 1], sizes
            assert found["best"]["comparison"]["ratio"] < 0.6
        # It goes on from what is there.
        again = feign("lab", path, "--search", "--budget", "60", "--json", "--results", out)
        assert again.status == 0 and again.json()["best"]["label"] == "paced pace=think,scale=0.1"
        text = feign("lab", path, "--search", "--budget", "8", "--results", os.path.join(t, "few.json"))
        assert text.status == 0 and "of 9 configurations, chosen at random" in text.out, text.out
        timed = feign("lab", path, "--search", "--budget", "1s", "--results", os.path.join(t, "timed.json"))
        assert timed.status == 0 and "found: paced" in timed.out, timed.out + timed.err
        refuses("lab", path, "--search", "--budget", "1", text="too small to try anything, want at least 2 runs")
        refuses("lab", path, "--search", "--budget", "soon", text="--budget soon: want a number of runs, or a time")
        refuses("lab", path, "--budget", "3", text="--budget: is for --search")


def served(path, requests, *more):
    p = subprocess.run([FEIGN, "lab", path, "--serve", *more], input="".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in requests),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True)
    assert p.returncode == 0 and "Sanitizer" not in p.stderr, p.stderr
    return [json.loads(line) for line in p.stdout.splitlines()]


def test_an_optimiser_outside_asks_and_is_answered():
    with Tmp() as t:
        trace(t, last_us=100000)
        path = lab(t, PACES + "  shaken: {with: {jitter: {max: {from: 1ms, to: 9ms, factor: 3}}}, pace: think}\n")
        hello, first, wild, *wrong = served(path, [
            {"id": 7, "variant": "paced", "parameters": {"pace": "think,scale=0.25"}, "repeats": 2},
            {"id": "x", "variant": "shaken", "parameters": {"max": "2ms"}},
            {"variant": "nobody"}, {"variant": "shaken", "parameters": {"max": "soon"}}, {"variant": "shaken", "parameters": {"least": 1}},
            {"variant": "paced", "parameters": {"pace": "fast"}}, {"variant": "paced", "repeats": 0}, {"variants": 1}, "{\n", "[]\n", "\n"])
        assert hello["schema"] == "feign-lab-protocol/1" and hello["baseline"] == "baseline"
        assert hello["variants"]["shaken"] == {"max": ["1ms", "3ms", "9ms"]} and len(hello["variants"]["paced"]["pace"]) == 9
        assert first["id"] == 7 and len(first["seconds"]) == 2 and first["failed"] == 0 and first["comparison"]["pairs"] == 2, first
        assert min(first["seconds"]) < 0.1, "a quarter of the pauses, of 100 ms; the other run may have waited for a processor"
        assert wild["id"] == "x" and wild["label"] == "shaken max=2ms"
        assert first["comparison"]["resolves"] >= 0 and wild["comparison"]["resolves"] is None, "of one pair nothing is known"
        said = [w["error"] for w in wrong]
        for text, want in zip(said, ["want one of baseline, paced, shaken", "soon", "no parameter \"least\"; it has max", "want afap", "repeats: want",
                                     "unknown key \"variants\"", "want a JSON object", "want a JSON object"]):
            assert want in text, (want, text)
        runs = results_of(os.path.join(t, "x.results.json"))["runs"]
        assert len(runs) == 5 and {r["by"] for r in runs} == {"serve"}, "two repeats of two, then one of the third: the baseline is there"
        report = feign("lab", "report", os.path.join(t, "x.results.json"), "--json").json()
        assert {row["label"] for row in report["groups"][0]["rows"]} >= {"paced pace=think,scale=0.25", "shaken max=2ms"}


def test_what_optuna_may_choose_from():
    spec = importlib.util.spec_from_file_location("optuna_search", os.path.join(TOP, "examples", "optuna-search.py"))
    search = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(search)

    class Trial:
        def suggest_int(self, _, low, high, log):
            return (low, high, log)

        def suggest_float(self, _, low, high, log):
            return [low, high, log]

        def suggest_categorical(self, _, values):
            return values
    for values, want in ((["1", "9"], "(1, 9, False)"), (["4k", "1m"], f"({4 << 10}, {1 << 20}, True)"), (["0.5", "2"], "[0.5, 2, False]"),
                         (["0", "10ms"], "(0, 10000000, False)ns"), (["30s", "1m", "1h"], f"({30 * 10**9}, {3600 * 10**9}, True)ns"),
                         (["0", "1m", "5m"], ["0", "1m", "5m"]), (["4k", "10ms"], ["4k", "10ms"]), (["yes", "1"], ["yes", "1"]), (["1"], ["1"])):
        assert search.suggest(Trial(), "x", values) == want, values


def test_optuna_drives_a_lab():
    python = os.environ.get("FEIGN_OPTUNA_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import optuna"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("Optuna is not installed (pip install optuna in a venv; FEIGN_OPTUNA_PYTHON is its python)")
    with Tmp() as t:
        trace(t, last_us=30000)
        path = lab(t, SMALL + "  shaken: {with: {jitter: {max: {from: 1ms, to: 50ms, factor: 50}, seed: [1, 9]}}, pace: think}\n")
        p = subprocess.run([python, os.path.join(TOP, "examples", "optuna-search.py"), path, "shaken", "--trials", "12", "--repeats", "2"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, text=True, env={**os.environ, "FEIGN": FEIGN})
        assert p.returncode == 0, p.stderr
        best = re.search(r"^best: \{'max': (\d+).*ratio ([\d.]+)", p.stdout, re.M)
        assert best and int(best[1]) < 10e6 and p.stdout.count(" ratio ") >= 12, p.stdout


# ---------------------------------------------------------------- the page


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    raise Skip("no Chromium (Debian, Ubuntu: apt-get install chromium)")


def browsed(page, script):
    """What `script` (the body of a function that returns something) finds in a page, in a real browser; errors of the page fail."""
    with open(page, encoding="utf-8") as f:
        html = f.read()
    first = "<script>window.problems = []; window.onerror = (m, s, l) => { problems.push(m + ' line ' + l); };</script>"
    last = ("<script>setTimeout(() => { let found; try { found = (() => {" + script + "})(); } catch (e) { problems.push(String(e.stack)); }"
            "document.documentElement.innerHTML = '<pre id=found>' + JSON.stringify({ problems: problems, found: found }).replace(/</g, '&lt;') + '</pre>'; }, 50);</script>")
    shown = page + ".test.html"
    with open(shown, "w", encoding="utf-8") as f:
        f.write(html.replace("<head>", "<head>" + first, 1).replace("</body>", last + "</body>", 1))
    with Tmp() as profile:
        p = subprocess.run([chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,2000", "--virtual-time-budget=20000", f"--user-data-dir={profile}",
                            "--dump-dom", "file://" + shown], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120)
    found = re.search(r"<pre id=\"found\">(.*)</pre>", p.stdout.decode("utf-8", "replace"), re.S)
    assert found, p.stdout[-2000:]
    answer = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert not answer["problems"], answer["problems"]
    return answer["found"]


def many_streams(path, streams, each):
    lines = []
    for s in range(streams):
        at = 1700000000.0 + s * 0.001
        lines.append((at, f'{1000 + s} %.6f openat(AT_FDCWD, "/data/f{s % 8}", O_RDWR|O_CREAT, 0644) = 3 <0.000010>'))
        for i in range(each):
            at += 0.0001
            call = "pread64" if i % 3 else "pwrite64"
            lines.append((at, f'{1000 + s} %.6f {call}(3, "x"..., {4096 << (i % 3)}, {i * 4096}) = {4096 << (i % 3)} <0.000010>'))
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(text % at + "\n" for at, text in sorted(lines))


# Ink of a chart's canvas; a drag over it, as a mouse makes it.
BROWSER = """
const ink = c => { let n = 0; for (const v of c.graph.graphDiv.querySelectorAll('canvas')) { const d = v.getContext('2d').getImageData(0, 0, v.width, v.height).data; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; } return n; };
const drag = (c, from, to) => { const e = c.graph.mouseEventElement_, r = e.getBoundingClientRect(), area = c.graph.getArea(); const y = r.top + area.y + area.h / 2;
  const fire = (on, type, x) => on.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, view: window, button: 0, detail: 1, screenX: x, screenY: y, clientX: x, clientY: y }));
  const x = share => r.left + area.x + area.w * share; fire(e, 'mousedown', x(from)); fire(document, 'mousemove', x((from + to) / 2)); fire(document, 'mousemove', x(to)); fire(document, 'mouseup', x(to)); };
const of = name => feign.charts.filter(c => c.name === name);
"""


def test_the_page_draws_100000_activities_of_64_streams_and_zooms():
    chromium()
    if not os.path.exists("/usr/share/javascript/dygraphs/dygraph.min.js"):
        raise Skip("no dygraphs (Debian, Ubuntu: apt-get install libjs-dygraphs)")
    with Tmp() as t:
        many_streams(os.path.join(t, "t.strace"), 64, 1562)
        path, page = lab(t, "traces: TRACE\nroots: {path: ROOT, drop-caches: no}\nrepeats: 1\norder: stream\nvariants: [baseline]\n"), os.path.join(t, "x.html")
        r = feign("lab", path, "--html", page)
        assert r.status == 0, r.err
        found = browsed(page, BROWSER + """
const t = of('timeline')[0], before = { range: t.graph.xAxisRange(), counted: t.counted(), ink: ink(t) };
const began = performance.now(); t.graph.updateOptions({}); const took = performance.now() - began;
drag(t, 0.4, 0.6);
const zoomed = { range: t.graph.xAxisRange(), counted: t.counted(), ink: ink(t) };
t.graph.resetZoom();
return { ready: feign.ready, names: feign.charts.map(c => c.name), inks: feign.charts.map(ink), before: before, zoomed: zoomed, again: t.counted(), took: took,
  streams: feign.data.timelines[0].streams.length, tables: document.querySelectorAll('table').length, plots: typeof Dygraph };
""")
        assert found["ready"] and found["streams"] == 64 and found["tables"] >= 2
        assert {"timeline", "offsets", "sizes", "latency"} <= set(found["names"]), found["names"]
        assert min(found["inks"]) > 500, found["inks"]
        assert found["before"]["counted"] == found["again"] == 64 * 1563, found["before"]
        width = lambda z: z["range"][1] - z["range"][0]
        assert abs(width(found["zoomed"]) / width(found["before"]) - 0.2) < 0.03, found
        assert found["zoomed"]["counted"] < found["before"]["counted"] / 2 and found["zoomed"]["ink"] > 500
        with open(page, encoding="utf-8") as f:
            text = f.read()
        assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:|//|\.)", text.split("<script>", 1)[0]) and "Dan Vanderkam" in text


def test_the_page_compares_variants_and_parameters():
    chromium()
    if not os.path.exists("/usr/share/javascript/dygraphs/dygraph.min.js"):
        raise Skip("no dygraphs (Debian, Ubuntu: apt-get install libjs-dygraphs)")
    with Tmp() as t:
        path, page = lab(t, SMALL + "  </script><b>: {pace: think}\n  by: {with: {jitter: {max: {from: 1us, to: 100us, factor: 10}}}}\n"
                         "curves: {name: elsewhere, variant: by, parameter: max, baseline: 1s, points: {1us: 900ms, 50us: 1s, 100us: 2s}}\n"), os.path.join(t, "x.html")
        r = feign("lab", path, "--html", page)
        assert r.status == 0, r.err
        runs = results_of(os.path.join(t, "x.results.json"))["runs"]
        assert sum(run["repeat"] == 0 for run in runs) in (1, 2) and os.listdir(os.path.join(t, "x.results.activities"))
        # The report can be made again, from anywhere.
        assert feign("lab", "report", os.path.join(t, "x.results.json"), "--html", page, "-q", cwd="/").status == 0
        found = browsed(page, BROWSER + """
const runs = of('runs')[0], wide = runs.graph.xAxisRange(); drag(runs, 0.1, 0.5); const near = runs.graph.xAxisRange();
const select = document.querySelector('select'); select.selectedIndex = 1; select.onchange();
return { names: feign.charts.map(c => c.name).sort(), inks: feign.charts.map(ink), rows: [...document.querySelectorAll('table')[0].querySelectorAll('tr')].map(r => r.textContent),
  points: runs.graph.numRows(), wide: wide, near: near, bold: document.querySelectorAll('b').length, ratios: ['ratios', 'parameter ratio'].map(n => of(n)[0].graph.yAxisRange()),
  beside: of('parameter ratio')[0].graph.getLabels(), both: of('parameter ratio')[0].graph.numRows(), heads: [...document.querySelectorAll('th')].map(e => e.textContent) };
""")
        assert found["names"].count("parameter time") == 1 and {"runs", "ratios", "latency", "timeline"} <= set(found["names"]), found["names"]
        assert min(found["inks"]) > 200 and found["points"] == 7 * 6 and found["bold"] == 0, found
        assert found["near"][1] - found["near"][0] < (found["wide"][1] - found["wide"][0]) * 0.5
        assert any("</script><b>" in row for row in found["rows"]), found["rows"]
        assert all(low == 0 and high > 1 for low, high in found["ratios"]) and found["ratios"][1][1] > 2, "1 and what was measured elsewhere are in sight"
        assert found["beside"] == ["max", "this lab", "elsewhere"] and found["both"] == 4 and "elsewhere" in found["heads"], found
        assert {"parameter calls", "parameter bytes", "parameter ratio"} <= set(found["names"]), found["names"]


def in_firefox(page, script):
    """The same in Firefox, which has no --dump-dom: a server of this test gives it the page and gets what it found."""
    browser = next((b for b in ("firefox-esr", "firefox") if shutil.which(b)), None)
    if browser is None:
        raise Skip("no Firefox (Debian: apt-get install firefox-esr)")
    with open(page, encoding="utf-8") as f:
        html = f.read()
    first = "<script>window.problems = []; window.onerror = (m, s, l) => { problems.push(m + ' line ' + l); };</script>"
    last = ("<script>setTimeout(() => { let found = null; try { found = (() => {" + script + "})(); } catch (e) { problems.push(String(e)); }"
            "fetch('/found', { method: 'POST', body: JSON.stringify({ problems: problems, found: found }) }); }, 200);</script>")
    shown = html.replace("<head>", "<head>" + first, 1).replace("</body>", last + "</body>", 1).encode()
    answers = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/" else 404)
            self.end_headers()
            self.wfile.write(shown if self.path == "/" else b"")

        def do_POST(self):
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    with Tmp() as profile, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        p = subprocess.Popen([browser, "--headless", "--no-remote", "--profile", profile, f"http://127.0.0.1:{server.server_port}/"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": profile}, start_new_session=True)
        try:
            answer = answers.get(timeout=90)
        except queue.Empty:
            raise AssertionError("Firefox said nothing in 90 s") from None
        finally:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            server.shutdown()
    assert not answer["problems"], answer["problems"]
    return answer["found"]


def test_the_page_is_drawn_and_zooms_in_firefox_too():
    if not os.path.exists("/usr/share/javascript/dygraphs/dygraph.min.js"):
        raise Skip("no dygraphs (Debian, Ubuntu: apt-get install libjs-dygraphs)")
    with Tmp() as t:
        many_streams(os.path.join(t, "t.strace"), 8, 200)
        page, root = os.path.join(t, "x.html"), os.path.join(t, "root")
        os.mkdir(root)
        assert feign("replay", os.path.join(t, "t.strace"), "--root", root, "--order", "stream", "--html", page).status == 0
        found = in_firefox(page, BROWSER + """
const t = of('timeline')[0], before = t.graph.xAxisRange(); drag(t, 0.4, 0.6);
return { inks: feign.charts.map(ink), before: before, near: t.graph.xAxisRange(), ready: feign.ready };
""")
        assert found["ready"] and min(found["inks"]) > 300, found
        share = (found["near"][1] - found["near"][0]) / (found["before"][1] - found["before"][0])
        assert abs(share - 0.2) < 0.03, found


def test_a_replay_has_a_page_too():
    chromium()
    with Tmp() as t:
        many_streams(os.path.join(t, "t.strace"), 3, 200)
        page, root = os.path.join(t, "x.html"), os.path.join(t, "root")
        os.mkdir(root)
        r = feign("replay", os.path.join(t, "t.strace"), "--root", root, "--order", "stream", "--html", page)
        assert r.status == 0 and "fidelity   100.00 %" in r.out, r.err
        assert sorted(os.listdir(t)) == ["root", "t.strace", "x.html"]
        found = browsed(page, "return { names: feign.charts.map(c => c.name), text: document.body.innerText };")
        assert "t.strace" in found["text"] and "603" in found["text"], found["text"]
        if os.path.exists("/usr/share/javascript/dygraphs/dygraph.min.js"):
            assert {"timeline", "latency", "offsets"} <= set(found["names"])


def test_without_the_charting_library_the_page_has_tables_and_says_what_to_install():
    with Tmp() as t:
        path, page = lab(t, SMALL), os.path.join(t, "x.html")
        r = feign("lab", path, "--html", page, env={"FEIGN_DYGRAPHS": "/nowhere"})
        assert r.status == 0 and "apt-get install libjs-dygraphs" in r.err, r.err
        found = browsed(page, "return { tables: document.querySelectorAll('table').length, text: document.body.innerText };")
        assert found["tables"] >= 2 and "apt-get install libjs-dygraphs" in found["text"] and "half" in found["text"], found


def test_a_replay_writes_down_its_activities():
    with Tmp() as t:
        many_streams(os.path.join(t, "t.strace"), 3, 2000)
        out, root = os.path.join(t, "done"), os.path.join(t, "root")
        os.mkdir(root)
        r = feign("replay", os.path.join(t, "t.strace"), "--root", root, "--order", "stream", "--activities", out, "--json")
        assert r.status == 0, r.err
        with open(out, "rb") as f:
            data = f.read()
        magic, version, size, count, names_at, begin, end = struct.unpack_from("<8sIIQQQQ", data)
        assert (magic, version, size, count) == (b"FEIGNACT", 1, 64, 3 * 2001), (magic, version, size, count)
        names = json.loads(data[names_at:])
        records = [struct.unpack_from("<QQQQqQIIII", data, 48 + 64 * i) for i in range(count)]
        assert {names["ops"][str(r[7])]["name"] for r in records} == {"openat", "pread64", "pwrite64"}
        assert {names["paths"][str(r[9])] for r in records} == {"/data/f0", "/data/f1", "/data/f2"}
        assert all(begin <= r[0] and r[0] + r[1] <= end for r in records) and len({r[5] for r in records}) == count
        moved = sum(r[4] for r in records if names["ops"][str(r[7])]["name"] != "openat")
        assert moved == sum(4096 << (i % 3) for i in range(2000)) * 3
        refuses("replay", os.path.join(t, "t.strace"), "--root", root, "--activities", "/nowhere/x", text="/nowhere/x")
        refuses("replay", os.path.join(t, "t.strace"), "--root", root, "--before", "exit 4", text="--before \"exit 4\": exit status 4")


if __name__ == "__main__":
    main(globals())
