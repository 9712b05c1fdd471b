#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--explain, in golden text; replicate, scale and several injecting modifiers through whole commands; options that are wrong."""
import os
import re
import subprocess

from harness import TOP, Tmp, feign, main, refuses, tree

TRACE = """100 1.000000 mkdir("/d", 0777) = 0 <0.000010>
100 1.001000 openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0666) = 3 <0.000010>
100 1.002000 write(3, ""..., 10) = 10 <0.000010>
100 1.003000 lseek(3, 10, SEEK_SET) = 10 <0.000010>
100 1.004000 write(3, ""..., 20) = 20 <0.000010>
100 1.005000 fsync(3) = 0 <0.000010>
100 1.006000 fork() = 101 <0.000010>
101 1.007000 pread64(3, ""..., 10, 0) = 10 <0.000010>
101 1.008000 pread64(3, ""..., 10, 1000000) = 0 <0.000010>
101 1.009000 exit_group(0) = ? <0.000010>
100 1.010000 openat(AT_FDCWD, "/in", O_RDONLY) = 4 <0.000010>
100 1.020000 pread64(4, ""..., 100, 500000) = 100 <0.000010>
100 1.030000 pread64(4, ""..., 100, 0) = 100 <0.000010>
100 1.040000 close(4) = 0 <0.000010>
"""


def written(tmp, text=TRACE.replace(" 1.0", " 1700000001.0")):
    path = os.path.join(tmp, "app.strace")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def golden(name, text):
    path = os.path.join(TOP, "tests", "golden", name)
    if os.environ.get("UPDATE_GOLDEN"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    with open(path, encoding="utf-8") as f:
        want = f.read()
    assert text == want, f"{name}:\n{text}"


def test_explain():
    with Tmp() as tmp:
        trace, out = written(tmp), os.path.join(tmp, "x.txt")
        r = feign("convert", trace, out, "--explain", "13", "--with", "rebase,map=/d:/e", "--with", "coalesce", "--with", "prefetch",
                  "--with", "hints,advice=random,fsync=drop", "--with", "scale,think=2", "-q")
        assert r.status == 0, r.err
        golden("explain.txt", r.out)


def test_explain_in_every_command():
    with Tmp() as tmp:
        trace, out, yaml = written(tmp), os.path.join(tmp, "x.txt"), os.path.join(tmp, "p.yaml")
        with open(yaml, "w", encoding="utf-8") as f:
            f.write(f"plugins:\n  - strace: {{file: {trace}}}\n  - coalesce\n  - 'null'\n")
        for args in (["run", yaml, "--explain"], ["run", "--explain", yaml], ["replay", "--explain", trace, "--replayer", "null", "--with", "coalesce"],
                     ["convert", trace, out, "--with", "coalesce", "--explain=20"],
                     ["--plugin", f"strace,file={trace}", "--plugin", "coalesce", "--plugin", "null", "--explain", "20"]):
            r = feign(*args)
            assert r.status == 0, (args, r.err)
            assert "merged into 4" in r.out and "does the work of 1 more" in r.out, (args, r.out)
        r = feign("run", yaml, "--explain", "--json")
        assert r.json()["activities"] and "merged into 4" in r.err
        r = feign("run", yaml)
        assert "merged into" not in r.out
        refuses("run", yaml, "--explain", "0", text="--explain")


def test_it_counts_what_the_report_counts_however_much_was_injected():
    """More copies than there are numbers between two activities, and modifiers behind them."""
    with Tmp() as tmp:
        trace = written(tmp)
        for with_ in (["replicate,copies=300", "hints,advice=random", "prefetch,fresh=0"], ["replicate,copies=300", "coalesce", "scale,think=2", "replicate,copies=2,into=/x"],
                      ["hints,advice=random", "filter,drop=yes,kind=seek", "replicate,copies=300", "coalesce,window=5"]):
            r = feign("replay", trace, "--replayer", "null", "--json", "--explain", "1000000", *[x for w in with_ for x in ("--with", w)])
            assert r.status == 0, r.err
            said = re.search(r"([0-9]+) injected, ([0-9]+) merged, ([0-9]+) dropped", r.err)
            j = r.json()
            assert [int(n) for n in said.groups()] == [j["injected"], j["merged"], j["dropped"]], (with_, said.group(), j["injected"], j["merged"], j["dropped"])
        # What lies past the last one that is shown was recorded, not injected.
        r = feign("replay", trace, "--replayer", "null", "--json", "--explain", "2", "--with", "replicate,copies=300", "--with", "scale,think=2")
        assert re.search(r" 299 injected, 0 merged, 0 dropped", r.err), r.err[-300:]


def test_replicate_says_once_that_there_are_no_ranks():
    with Tmp() as tmp:
        r = feign("replay", written(tmp), "--replayer", "null", "--with", "replicate,copies=2,ranks=4")
        assert r.status == 0 and r.err.count("the trace has no MPI ranks") == 1, r.err


def test_two_that_inject_at_the_same_place():
    """And what depends on what moved on still does."""
    with Tmp() as tmp:
        trace, root = written(tmp), os.path.join(tmp, "root")
        for order in (["prefetch,distance=3", "hints,advice=random", "hints,advice=sequential", "hints,advice=noreuse", "depend"],
                      ["depend", "hints,advice=random", "hints,advice=sequential", "prefetch", "prefetch,fresh=0", "replicate,copies=1,into=/x"][:5]):
            os.makedirs(root, exist_ok=True)
            r = feign("replay", trace, "--root", root, "--json", "--order", "stream", *[x for w in order for x in ("--with", w)])
            assert r.status == 0 and r.json()["mismatched"] == 0, (order, r.err, r.out[-3000:])
            assert r.json()["ops"]["fadvise64"]["activities"] >= 5


def test_replicate():
    with Tmp() as tmp:
        trace, root = written(tmp), os.path.join(tmp, "root")
        os.makedirs(root)
        plain = feign("replay", trace, "--root", root, "--json").json()
        one = {k: v for k, v in tree(root).items() if k != ".feign"}  # the manifest
        root = os.path.join(tmp, "root2")
        os.makedirs(root)
        for how in (["--order", "depend", "--with", "coalesce", "--with", "replicate,copies=5,offset=1ms"],
                    ["--order", "stream", "--with", "depend", "--with", "replicate,copies=5", "--with", "coalesce"]):
            replicated(trace, root, plain, one, how)


def test_a_links_target_comes_back_as_long_as_it_was_made():
    """What readlink tells is a path that rebase and replicate rewrite: whole, cut by its buffer, or relative."""
    trace = """100 1700000001.000000 mkdir("/d", 0755) = 0 <0.000010>
100 1700000001.001000 symlink("/d/f", "/d/l") = 0 <0.000010>
100 1700000001.002000 readlink("/d/l", "/d/f", 4) = 4 <0.000010>
100 1700000001.003000 readlink("/d/l", "/d", 2) = 2 <0.000010>
100 1700000001.004000 readlinkat(AT_FDCWD, "/q/l", "/d/f", 100) = 4 <0.000010>
100 1700000001.005000 readlink("/q/m", "f", 100) = 1 <0.000010>
"""
    with Tmp() as tmp:
        path = written(tmp, trace)
        for with_, targets in (("rebase,map=/d:/longer", {"longer/l": 9, "q/l": 9, "q/m": 1}), ("rebase,map=/d:/", {"l": 2, "q/l": 2, "q/m": 1}),
                               ("replicate,copies=2", {f"copy-{n}/{name}": size for n in (0, 1) for name, size in (("d/l", 11), ("q/l", 11), ("q/m", 1))})):
            root = os.path.join(tmp, re.sub("[,=:/]", "-", with_))
            os.makedirs(root)
            j = feign("replay", path, "--root", root, "--json", "--with", with_).json()
            assert not [m for m in j["mismatches"] if m["op"].startswith("readlink")], (with_, j["mismatches"])
            assert {k: v[1] for k, v in tree(root).items() if v[0] == "l"} == targets, (with_, tree(root))
        text = os.path.join(tmp, "a.txt")
        assert feign("convert", path, text).status == 0
        with open(text, encoding="utf-8") as f:
            whole = f.read()
        assert feign("convert", path, text, "--with", "rebase,map=/d:/longer", "--with", "rebase,map=/longer:/d").status == 0
        with open(text, encoding="utf-8") as f:
            assert f.read() == whole


def test_dependencies_follow_what_was_merged():
    """Process 101 is to read after the first write, which is done with the second one: then it waits for that."""
    trace = """100 1700000001.000000 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3 <0.000010>
100 1700000001.001000 fork() = 101 <0.000010>
101 1700000001.001050 getcwd("/", 4096) = 2 <0.000010>
100 1700000001.001500 pwrite64(3, ""..., 10, 0) = 10 <0.000010>
101 1700000001.001600 poll([{fd=5, events=POLLIN}], 1, -1) = 1 <0.198000>
100 1700000001.200000 pwrite64(3, ""..., 10, 10) = 10 <0.000010>
101 1700000001.200600 pread64(3, ""..., 10, 0) = 10 <0.000010>
"""
    with Tmp() as tmp:
        path, root, edges = written(tmp, trace), os.path.join(tmp, "root"), os.path.join(tmp, "edges")
        os.makedirs(root)
        with open(edges, "w", encoding="ascii") as f:
            f.write("5 after 3\n")
        r = feign("replay", path, "--root", root, "--json", "--order", "stream", "--pace", "think", "--with",
                  f"depend,rules=process+explicit,edges={edges}", "--with", "coalesce")
        assert r.status == 0, r.err
        j = r.json()
        assert (j["dropped"], j["merged"], j["mismatched"]) == (0, 1, 0), (j["dropped"], j["merged"], j["mismatches"])
        r = feign("replay", path, "--root", root, "--with", "coalesce")
        assert "modifiers  dropped 0   merged 1   injected 0" in r.out, r.out


def replicated(trace, root, plain, one, how):
    r = feign("replay", trace, "--root", root, "--json", *how)
    assert r.status == 0, r.err
    report, many = r.json(), tree(root)
    assert report["mismatched"] == 0 and report["matched"] > 4 * plain["matched"] - 20, report["mismatches"]
    assert len(report["streams"]) == 10
    for copy in range(5):
        of_copy = {k[len(f"copy-{copy}/"):]: v for k, v in many.items() if k.startswith(f"copy-{copy}/")}
        assert of_copy == one, (copy, of_copy, one)


def test_scale():
    with Tmp() as tmp:
        trace, root = written(tmp), os.path.join(tmp, "root")
        for factor, size in (("3", 90), ("0.5", 15)):
            os.makedirs(root, exist_ok=True)
            r = feign("replay", trace, "--root", root, "--json", "--with", f"scale,size={factor}")
            assert r.json()["mismatched"] == 0, r.json()["mismatches"]
            assert os.path.getsize(os.path.join(root, "d", "f")) == size


def test_options_that_are_wrong():
    with Tmp() as tmp:
        trace = written(tmp)
        for with_, said in (("coalesce,max=0", "max"), ("coalesce,max=x", "max=x"), ("coalesce,what=some", "reads|writes|both"),
                            ("prefetch,distance=0", "distance"), ("prefetch,form=old", "window|paper"), ("prefetch,budget=0", "budget"),
                            ("hints", "nothing to do"), ("hints,align=100", "power of two"), ("hints,advice=good", "sequential"),
                            ("hints,advice=random,min-size=2,max-size=1", "max-size"), ("scale,size=0", "size=0: want"), ("scale,think=-1", "think=-1: want"),
                            ("jitter,share=2", "share=2: want"), ("scale,think=x", "think=x"), ("replicate", "copies"), ("replicate,copies=0", "copies"), ("replicate,copies=2,into=x", "absolute")):
            refuses("convert", trace, os.path.join(tmp, "x.txt"), "--with", with_, text=said)
            assert not os.path.exists(os.path.join(tmp, "x.txt"))


def test_they_keep_the_contract():
    from harness import BUILD
    for name in ("coalesce", "prefetch", "scale", "hints,advice=random", "hints,align=4k,buffer=512", "replicate,copies=3", "posix", "null"):
        plugin, _, options = name.partition(",")
        r = feign("check", os.path.join(BUILD, "plugins", plugin + ".so") + ("," + options if options else ""))
        assert r.status == 0, r.out


def test_a_provider_is_checked_as_it_is_read():
    """It may make one activity before it emits another, and read the id of what it emitted until it makes the next."""
    with Tmp() as tmp:
        source, plugin, calls = (os.path.join(tmp, name) for name in ("calls.c", "calls.so", "x.calls"))
        with open(os.path.join(TOP, "tests", "plugins", "calls.c"), encoding="utf-8") as f:
            code = f.read()
        emits = "  return out->emit(out, a);\n"
        assert emits in code
        with open(source, "w", encoding="utf-8") as f:
            f.write(code.replace(emits, "  if (out->make(out) == NULL || out->emit(out, a) != FEIGN_OK || a->id == 0)\n"
                                        '    return host->fail(host, FEIGN_ERR_PLUGIN, "there is no id");\n  return FEIGN_OK;\n'))
        subprocess.run(["cc", "-shared", "-fPIC", "-I", os.path.join(TOP, "include"), "-o", plugin, source], check=True)
        with open(calls, "w", encoding="utf-8") as f:
            f.write("0 posix sync 0\n" * 100)
        assert feign("convert", calls, os.path.join(tmp, "x.feign"), "--provider", plugin).status == 0
        r = feign("check", plugin + ",file=" + calls)
        assert "ok   provider calls: gives the same activities, never more than it is asked for" in r.out, r.out


if __name__ == "__main__":
    main(globals())
