#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HDTrace: read against an independent reading of the XML, written and read back, refused where it is wrong."""
import contextlib
import glob
import gzip
import os
import random
import re
import shutil
import struct
import tarfile
import xml.etree.ElementTree as ET
from decimal import Decimal

from harness import BUILD, CORPUS, TOP, Skip, Tmp, bounded, feign, main, refuses, tree

HDTRACE = os.path.join(CORPUS, "hdtrace")
LINE = re.compile(r"(\d+) (\d+)\.(\d{9}) \[\d+ (?:rank (\d+) )?-1/(\d+)\] (mpi|mpiio):MPI_(\w+)\((.*)\) = (\S+) <(\d+)\.(\d{9})>(.*)$")
# Tags that are calls, told here once more; the hand-made traces have others.
RENAMED = {"FileOpen": "File_open", "FileWrite": "File_write", "FileRead": "File_read"}
NO_CALLS = {"Event", "Compute", "SINGLE", "BMI", "Trove", "Request"}


def text_of(project, *options):
    """The activities of a trace: (rank, thread), start and duration in ns, call, arguments, result, rest."""
    with Tmp() as tmp:
        out = os.path.join(tmp, "out.txt")
        r = feign("convert", "-q", project, *options, out)
        assert r.status == 0, r.err
        with open(out, encoding="utf-8") as f:
            return [parse(line.rstrip("\n")) for line in f]


def parse(line):
    m = LINE.match(line)
    assert m, line
    args = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,"]+)', m[8]))
    return {"stream": (int(m[4] or -1), int(m[5])), "start": int(m[2] + m[3]), "op": m[7], "args": args, "result": m[9],
            "duration": int(m[10] + m[11]), "depth": int((re.search(r" depth=(\d+)", m[12]) or [0, 0])[1]), "rest": m[12]}


def oracle(trace):
    """The same from the XML: a list of (start, duration, tag, depth, size), outer calls first."""
    root = ET.parse(trace).getroot()
    adjust = Decimal(root.get("timeAdjustment", "0"))

    def walk(parent, depth):
        out, inside = [], []
        for e in parent:
            if e.tag == "Nested":
                inside += walk(e, depth + 1)
                continue
            tag = RENAMED.get(e.tag, e.tag)
            if tag in NO_CALLS:
                out += [(s, d, t, dep - 1, n) for s, d, t, dep, n in inside]  # nothing is around them
                inside = []
                continue
            start, end = Decimal(e.get("time")) + adjust, Decimal(e.get("end")) + adjust
            size = sum(int(d.get("size")) for d in e.iter("Data")) if e.find("Data") is not None else int(e.get("size", 0))
            out += [(int(start * 10**9), int((end - start) * 10**9), tag, depth, size)] + inside
            inside = []
        return out + inside
    return walk(root, 0)


@contextlib.contextmanager
def corpus():
    """All projects: {name: path}, archives unpacked."""
    if not os.path.isdir(HDTRACE):
        raise Skip("no ../shared/corpus")
    with Tmp() as tmp:
        for archive in glob.glob(os.path.join(HDTRACE, "*.tgz")):
            with tarfile.open(archive) as t:
                t.extractall(os.path.join(tmp, os.path.basename(archive)[:-4]))
        found = glob.glob(os.path.join(HDTRACE, "*", "*.proj")) + glob.glob(os.path.join(tmp, "**", "*.proj"), recursive=True)
        for path in glob.glob(os.path.join(tmp, "**", "*.xml"), recursive=True):
            with open(path, encoding="utf-8") as f:
                if "<Application" in f.read(200):
                    found.append(path)
        assert len(found) >= 9, found
        yield {p: p for p in found}


def streams_of(project):
    """{(rank, thread): trace} by the topology, told from the XML."""
    out, number = {}, [-1]
    stem = re.sub(r"\.(proj|xml)$", "", project)

    def node(e, labels):
        number[0] += 1
        labels = labels + [e.get("name") or e.get("value")]
        mine = number[0]
        for suffix in (".trc", ".xml"):
            path = stem + "_" + "_".join(labels).replace(" ", "").lower() + suffix
            exact = stem + "_" + "_".join(labels) + suffix
            for p in {exact, path}:
                if os.path.exists(p):
                    rank = int(labels[1]) if len(labels) > 1 and labels[1].isdigit() else -1
                    thread = int(labels[2]) if len(labels) > 2 and labels[2].isdigit() else mine
                    out[(rank, thread)] = p
        for child in e:
            node(child, labels)
    for e in ET.parse(project).getroot().find("Topology"):
        if e.tag != "Level":
            node(e, [])
    return out


def test_every_project_reads_as_the_xml_says():
    with corpus() as projects:
        for project in projects:
            streams = streams_of(project)
            got = text_of(project)
            want = {stream: oracle(trace) for stream, trace in streams.items()}
            first = min((calls[0][0] for calls in want.values() if calls), default=0)
            base = first if first >= 10**17 else 0
            for stream, calls in want.items():
                mine = [(a["start"], a["duration"], a["op"], a["depth"], int(a["args"].get("size", 0)) if a["op"] != "File_open" else 0)
                        for a in got if a["stream"] == stream]
                calls = [(s - base, d, t, dep, n) for s, d, t, dep, n in calls]
                assert len(mine) == len(calls), f"{project} {stream}: {len(mine)} calls, want {len(calls)}"
                for i, (a, b) in enumerate(zip(mine, calls)):
                    assert a == b, f"{project} {stream}, call {i}: {a}, want {b}"
                # A pause counts from the end of the call before, at that depth, or from the start of the one around.
                since = [0]
                for a in (a for a in got if a["stream"] == stream):
                    del since[a["depth"] + 1:]
                    pause = max(0, a["start"] - since[-1])
                    assert f" compute={pause}" in a["rest"] + f" compute={0 if pause == 0 else -1}", (project, a, pause)
                    since[-1] = max(since[-1], a["start"] + a["duration"])
                    since.append(a["start"])
            assert sum(map(len, want.values())) == len(got)
            starts = [a["start"] for a in got]
            assert starts == sorted(starts), project


def test_names_and_sizes_come_from_the_project():
    with corpus() as projects:
        project = next(p for p in projects if p.endswith("partdiff-mpi/partdiff-mpi.proj"))
        got = text_of(project)
        opens = [a for a in got if a["op"] == "File_open"]
        assert {a["args"]["filename"] for a in opens} == {'"/pvfs2/visualization.dat"', '"/pvfs2/checkpoint.1"', '"/pvfs2/checkpoint.2"'}
        assert all(a["args"]["file_system"] == '"pvfs2:"' for a in opens)
        # The first open of each tells what the file held.
        sizes = {}
        for a in opens:
            if a["args"].get("size", "0") != "0":
                sizes.setdefault(a["args"]["filename"], []).append(int(a["args"]["size"]))
        assert sizes == {'"/pvfs2/checkpoint.1"': [328204288], '"/pvfs2/checkpoint.2"': [328217816]}, sizes
        # A datatype's id means another type on another rank.
        commits = {a["stream"][0]: a["args"]["type"] for a in got if a["op"] == "Type_commit" and "vector" in a["args"]["type"] and "struct" not in a["args"]["type"]}
        assert commits.get(0) == '"vector(3203,1,12810;;MPI_DOUBLE)"' and commits.get(1) == '"vector(3202,1,12810;;MPI_DOUBLE)"', commits
        assert {a["args"]["comm"] for a in got if a["op"] == "Barrier"} == {'"WORLD{0-3}"'}


def test_a_call_that_is_done_does_what_is_in_it():
    with corpus() as projects:
        project = next(p for p in projects if p.endswith("partdiff-mpi/partdiff-mpi.proj"))
        nested = sum(call[3] > 0 for trace in streams_of(project).values() for call in oracle(trace))
        every = sum(len(oracle(trace)) for trace in streams_of(project).values())
        for options in ([], ["--order", "stream"]):
            r = feign("replay", project, "--replayer", "null", "--json", *options)
            assert r.status == 0, r.err
            report = r.json()
            assert report["skipped"] == nested > 0, (report["skipped"], nested)
            assert report["replayed"] == every - nested
            # Where the outer call is not there, what was in it is done.
            sends = sum(call[2] == "Send" for trace in streams_of(project).values() for call in oracle(trace))
            r = feign("replay", project, "--replayer", "null", "--json", "--with", "filter,op=mpi:MPI_Send,state=drop", *options)
            assert r.status == 0 and r.json()["replayed"] == sends > 0, r.err


# ---- made-up projects ---------------------------------------------------------------------------

SENDS = ["Send", "Isend", "Ssend"]
DATA = ["File_read", "File_write", "File_read_all", "File_write_all", "File_iwrite"]
DATA_AT = ["File_read_at", "File_write_at", "File_write_at_all"]
TYPES = ['<NAMED id="0" name="MPI_INT"/>', '<NAMED id="1" name="MPI_BYTE"/>',
         '<VECTOR id="2" name="" count="7" blocklength="2" stride="9" oldType="0"/>',
         '<STRUCT id="3" name="" count="2"><Type id="0" displacement="0" blocklen="1"/><Type id="2" displacement="-4" blocklen="3"/></STRUCT>',
         '<INDEXED id="4" count="2" oldType="1"><Block len="1" index="2"/><Block len="3" index="4"/></INDEXED>',
         '<SUBARRAY id="5" ndims="2" order="C" oldType="3"><Dimension size="10" subsize="4" start="0"/><Dimension size="20" subsize="2" start="5"/></SUBARRAY>',
         '<RESIZED id="6" lowerBound="0" extent="64" oldType="4"/>', '<CONTIGUOUS id="7" count="5" oldType="6"/>', '<DUP id="8" oldType="7"/>',
         '<HVECTOR id="9" count="3" blocklength="1" stride="100" oldType="1"/>', '<HINDEXED id="10" count="1" oldType="0"><Block len="4" index="-8"/></HINDEXED>',
         '<INDEXED_BLOCK id="11" count="2" blockLength="3" oldType="0"><Block displacement="1"/><Block displacement="9"/></INDEXED_BLOCK>',
         '<DARRAY id="12" size="4" rank="1" dims="1" order="FORTRAN" oldType="0"><Dimension gsize="40" distrib="BLOCK" darg="DFLT_DARG" psize="4"/></DARRAY>',
         '<F90_REAL id="13"><Integer value="6"/><Integer value="30"/></F90_REAL>']


def make_project(folder, seed, ranks=3, calls=60):
    """A project of every kind of call, at random. Returns its path."""
    rng = random.Random(seed)
    stem = os.path.join(folder, "made")
    names = ["/data/a&b", "ufs:/data/in put", "/data/<x>"]
    topology = ""
    for rank in range(ranks):
        clock = [1_000_000 + rank * 37]
        topology += f'<Node name="n{rank // 2}"><Node name="{rank}"><Node name="0"/></Node></Node>\n'
        open_files, requests = {}, [0]

        def escaped(s):
            return s.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&apos;")

        def when(depth):
            clock[0] += rng.randrange(1, 900) * 7 + 1
            return clock[0]

        def end(tag, attributes, start, children=""):
            clock[0] += rng.randrange(0, 500)
            times = f"time='{start // 10**6}.{start % 10**6:06}' end='{clock[0] // 10**6}.{clock[0] % 10**6:06}'"
            site = rng.choice(["", f"cFile='{escaped(rng.choice(['a b.c', 'x:y.c']))}' cLine='{rng.randrange(999)}' "])
            return f"<{tag} {site}{attributes}  {times}" + (f">{children}</{tag}>\n" if children else "/>\n")

        def state(depth):
            start = when(depth)
            inside = "".join(state(depth + 1) for _ in range(rng.randrange(1, 4))) if depth < 3 and rng.random() < 0.25 else ""
            tid, n = rng.randrange(len(TYPES)), rng.randrange(0, 5000)
            comm, other = rng.randrange(3), rng.randrange(ranks)
            kind = rng.randrange(12)
            children = ""
            if kind == 0:
                tag, attributes = rng.choice(SENDS), f"size='{n}' count='{n // 4}' tid='{tid}' toRank='{other}' toTag='{rng.randrange(9)}' cid='{comm}'"
                if tag == "Isend":
                    requests[0] += 1
                    attributes += f" rid='{requests[0]}'"
            elif kind == 1:
                tag, attributes = "Recv", f"fromRank='{other}' fromTag='{rng.randrange(9)}' cid='{comm}'"
            elif kind == 2:
                tag = rng.choice(["Waitall", "Wait", "Testany"])
                attributes, children = "", "".join(f"<For rid='{(rid := rng.randrange(99)) | rid % 2 << 62}'/>" for _ in range(1 if tag == "Wait" else rng.randrange(1, 5)))
            elif kind == 3:
                tag, attributes = "Sendrecv", (f"size='{n}' toRank='{other}' toTag='1' fromRank='{other}' fromTag='2' cid='{comm}' "
                                               f"count='{n}' sendTid='{tid}' recvTid='{rng.randrange(len(TYPES))}'")
            elif kind == 4:
                tag, attributes = "Gather", f"size='{n}' recvSize='{n * ranks}' root='0' cid='{comm}' count='{n}' tid='1' recvCount='{n}' recvtid='1'"
            elif kind == 5:
                tag, attributes = rng.choice([("Barrier", f"cid='{comm}'"), ("Bcast", f"size='{n}' rootRank='0' cid='0' count='{n}' tid='1'"),
                                              ("Type_commit", f"tid='{tid}'"), ("Comm_split", f"cid='0' newcid='{comm}'"), ("Comm_rank", ""),
                                              ("Allreduce", f"size='{n}' cid='{comm}' count='{n}' tid='{tid}'"), ("Type_free", "tid='99'"), ("Comm_free", "cid='7'")])
            elif kind == 6:
                tag = "Alltoallv"
                attributes = f"cid='{comm}'"
                children = "".join(f"<Send rank='{i}' size='{4 * (n + i)}' count='{n + i}' tid='0'/>" for i in range(ranks))
            elif kind == 7 or not open_files:
                fid = len(open_files) + (rng.randrange(5) if rng.random() < 0.3 else 0)
                tag = "File_open"
                attributes = f"cid='{comm}' name='{escaped(rng.choice(names))}' flags='{rng.choice([1, 2, 5, 9, 8])}' fid='{fid}'"
                children = rng.choice(["", "<Info key='cb_nodes' value='4'/><Info key='a=b;c%' value='x y'/>", "<Info value='only'/>"])
                open_files[fid] = True
            else:
                fid = rng.choice(list(open_files))
                if kind == 8:
                    tag, attributes = rng.choice(DATA), f"fid='{fid}' offset='{rng.randrange(10**12)}' size='{n}' count='{n}' tid='1'"
                elif kind == 9:
                    tag, attributes = rng.choice(DATA_AT), f"fid='{fid}' offset='{rng.randrange(10**9)}' size='{n}' count='{n}' tid='{tid}'"
                elif kind == 10:
                    tag, attributes, children = rng.choice([
                        ("File_seek", f"fid='{fid}' relative-offset='-5' whence='Cur' offset='{n}'", ""),
                        ("File_set_view", f"fid='{fid}' offset='{n}' etid='0' filetid='{tid}' representation='native'", "<Info key='k' value='v'/>"),
                        ("File_write", f"fid='{fid}'", f"<Data offset='{n}' size='10'/><Data offset='{n + 100}' size='20'/>"),
                        ("File_set_size", f"fid='{fid}' size='{n}'", ""), ("File_sync", f"fid='{fid}'", ""), ("File_write_ordered", f"fid='{fid}' size='{n}' count='{n}' tid='1'", ""),
                        ("File_get_position", "", ""), ("File_write_all_begin", f"fid='{fid}' rid='3' offset='8' size='{n}' count='{n}' tid='1'", ""), ("File_delete", "name='ufs:/data/in put'", ""), ("File_set_atomicity", f"fid='{fid}' flag='1'", "")])
                else:
                    tag, attributes = "File_close", f"fid='{fid}'"
                    del open_files[fid]
            if inside:
                clock[0] += 1
            own = end(tag, attributes, start, children)
            return (f"<Nested>\n{inside}</Nested>\n" if inside else "") + own

        with open(f"{stem}_n{rank // 2}_{rank}_0.trc", "w", encoding="utf-8") as f:
            f.write("<Program timeAdjustment='0'>\n" + "".join(state(0) for _ in range(calls)) + "</Program>\n")
    types = "\n".join(f'<Rank name="{r}" thread="0">{"".join(TYPES)}</Rank>' for r in range(ranks))
    comms = "".join(f'<Communicator name="{n}">' + "".join(f'<Rank global="{r}" local="{(r + i) % ranks}" cid="{i}"/>' for r in range(ranks)) + "</Communicator>"
                    for i, n in enumerate(["WORLD", "", "half"]))
    with open(stem + ".proj", "w", encoding="utf-8") as f:
        f.write(f'<Application name="made"><FileList><File name="/data/a&amp;b"><InitialSize>64K</InitialSize></File>'
                f'<File name="ufs:/data/in put"><InitialSize>0</InitialSize></File></FileList><Topology>{topology}</Topology>'
                f"<CommunicatorList>{comms}</CommunicatorList><Datatypes>{types}</Datatypes></Application>")
    return stem + ".proj"


def converted(source, target):
    r = feign("convert", source, target)
    assert r.status == 0, r.err
    return r.err


def lines(path):
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


def test_native_to_hdtrace_and_back_is_the_same():
    for seed in range(8):
        with Tmp() as tmp:
            p = lambda name: os.path.join(tmp, name)  # noqa: E731
            converted(make_project(tmp, seed), p("a.feign"))
            converted(p("a.feign"), p("a.txt"))
            said = converted(p("a.feign"), p("b.proj"))
            assert said == "", said
            converted(p("b.proj"), p("c.feign"))
            converted(p("c.feign"), p("c.txt"))
            a, c = lines(p("a.txt")), lines(p("c.txt"))
            assert len(a) > 150
            for x, y in zip(a, c):
                assert x == y, f"seed {seed}\n  was    {x}\n  is now {y}"
            assert len(a) == len(c)


def test_requests_come_back_with_what_they_got():
    """Whom a receive by wildcard got was taken for the request, and a number that is not known was refused."""
    waits = ("<Wait time='1' end='2'><For rid='5'/><For rid='2305843009213693957'/><For rid='1152921513196782488'/></Wait>\n"
             "<Waitall count='2' time='3' end='4'><For rid='-9223372036854775808'/><For rid='7'/></Waitall>\n")
    with Tmp() as tmp:
        p = lambda name: os.path.join(tmp, name)  # noqa: E731
        for name, content in (("x.proj", PROJECT % ""), ("x_n_0_0.trc", TRACE % waits)):
            with open(p(name), "w", encoding="utf-8") as f:
                f.write(content)
        converted(p("x.proj"), p("y.proj"))
        for project in ("x.proj", "y.proj"):
            wait, waitall = text_of(p(project))
            assert wait["args"] == {"request": "5", "matched": "[2305843009213693957 1152921513196782488]"}, wait
            assert waitall["args"]["array_of_requests"] == "[9223372036854775808 7]", waitall


def test_every_project_of_the_corpus_comes_back():
    with corpus() as projects:
        for project in projects:
            with Tmp() as tmp:
                p = lambda name: os.path.join(tmp, name)  # noqa: E731
                converted(project, p("a.txt"))
                converted(project, p("b.proj"))
                converted(p("b.proj"), p("b.txt"))
                # Ranks and hosts that are not known get some; times may begin elsewhere.
                strip = lambda line: re.sub(r"\[[^\]]*\] ", "", line)  # noqa: E731
                a, b = [strip(x) for x in lines(p("a.txt"))], [strip(x) for x in lines(p("b.txt"))]
                if "generation2-hand" in project:
                    a, b = sorted(x.split(" ", 1)[1] for x in a), sorted(x.split(" ", 1)[1] for x in b)
                    a, b = [re.sub(r"comm=\S+", "", x) for x in a], [re.sub(r"comm=\S+", "", x) for x in b]
                for x, y in zip(a, b):
                    assert x == y, f"{project}\n  was    {x}\n  is now {y}"
                assert len(a) == len(b)


def test_a_trace_without_mpi_is_no_project():
    with Tmp() as tmp:
        trace, project = os.path.join(TOP, "tests", "golden", "names.strace"), os.path.join(tmp, "x.proj")
        refuses("convert", trace, project, text="x.proj: HDTrace has calls of MPI and MPI-IO alone, of which there are none: nothing is written")
        refuses("convert", trace, os.path.join(tmp, "a_b.proj"), text='a_b.proj: want a name without "_"')
        assert not os.listdir(tmp)
        assert feign("convert", trace, project, "--with", "filter,op=mpi:MPI_Barrier,state=drop").status == 0  # of nothing, a project of nothing
        checked = feign("check", os.path.join(BUILD, "plugins", "hdtrace.so")).out  # writes calls of posix alone
        assert "skip writer hdtrace: writes its file" in checked and " 0 failed" in checked, checked


def test_paths_filter_and_rebase_as_those_of_other_layers():
    with Tmp() as tmp:
        project = make_project(tmp, 1)
        every = text_of(project)
        of_a = [a for a in every if "a&b" in a["rest"] or "a&b" in a["args"].get("filename", "")]
        kept = text_of(project, "--with", "filter,path=/data/a&b")
        assert [a["op"] for a in kept if a["op"].startswith("File_") and "path" in a["rest"] or "filename" in a["args"]] == \
            [a["op"] for a in of_a if "path" in a["rest"] or "filename" in a["args"]]
        moved = text_of(project, "--with", "rebase,map=/data:/other")
        assert '"/other/a&b"' in {a["args"].get("filename") for a in moved}
        assert not [a for a in moved if '"/data/' in a["rest"]]


def test_a_call_that_is_named_without_its_layer():
    with Tmp() as tmp:
        refuses("convert", make_project(tmp, 4), os.path.join(tmp, "out.txt"), "--with", "filter,op=MPI_Send",
                text=r"op=MPI_Send: there is no such call; there are: mpi:MPI_Send$")


def test_prepare_makes_what_the_files_held():
    with Tmp() as tmp:
        root = os.path.join(tmp, "root")
        os.mkdir(root)
        r = feign("replay", make_project(tmp, 2), "--root", root, "--json")
        assert r.status == 0, r.err
        made = tree(root)
        assert made["data/a&b"][1] >= 65536, made


# ---- bad input ----------------------------------------------------------------------------------

PROJECT = ('<Application name="x">\n<Topology><Level type="Hostname"><Level type="Rank"><Level type="Thread"/></Level></Level>\n'
           '<Node name="n"><Node name="0">\n<Node name="0"/></Node></Node></Topology>\n%s</Application>\n')
TRACE = "<Program timeAdjustment='5'>\n%s</Program>\n"
SEND = "<Send size='4' toRank='1' time='1.5' end='1.6'/>\n"


def bad(trace=TRACE % SEND, project=PROJECT % "", text="", info=None, call="info"):
    with Tmp() as tmp:
        for name, content in (("x.proj", project), ("x_n_0_0.trc", trace), ("x_n_0_0.info", info)):
            if content is not None:
                with open(os.path.join(tmp, name), "wb") as f:
                    f.write(content if isinstance(content, bytes) else content.encode())
        if text:
            refuses(call, os.path.join(tmp, "x.proj"), text=text)
        else:
            r = feign(call, os.path.join(tmp, "x.proj"))
            assert r.status == 0, r.err


def test_malformed_traces_are_named_by_line():
    bad()
    whole = TRACE % (SEND * 3)
    for cut in range(len("<Program timeAdjustment='5'>"), len(whole) - 2):
        bad(whole[:cut], text=r"x_n_0_0.trc:\d: .*want")
    bad(TRACE % "<Send size='4' time='1'/>\n", text=r"trc:2: <Send>: want a call, which has time='…' and end='…'")
    bad(TRACE % "<Send time='1' end='x'/>\n", text=r'trc:2: <Send>: end="x": want seconds')
    bad(TRACE % "<Send time='2' end='1'/>\n", text=r'trc:2: <Send>: end="1": want no time before its start')
    bad(TRACE % "<Send time='99999999999999' end='1'/>\n", text=r"trc:2: <Send>: time=.*want seconds")
    bad(TRACE.replace("5", "4000000000") % "<Send time='8000000000' end='8000000001'/>\n", text=r"trc:2: <Send>: time=\"8000000000\": want seconds")
    bad(TRACE.replace("5", "8000000000") % SEND, text=r"trc:1: <Program>: timeAdjustment=\"8000000000\": want seconds")
    bad(TRACE % (SEND + "<Send size='99999999999999999999' time='1' end='2'/>\n"), text=r"trc:3: <Send>: size=\"9+\": want a number")
    bad(TRACE % (SEND + "<Send size='2305843009213693952' time='1' end='2'/>\n"), text=r"trc:3: <Send>: size=.*want bytes, 0 to 2\^60")
    bad(TRACE % "<Send size='-1' time='1' end='2'/>\n", text=r"trc:2: <Send>: size=\"-1\": want bytes")
    bad(TRACE % "<File_write fid='1' time='1' end='2'><Data offset='z' size='1'/></File_write>\n", text=r"trc:2: <Data>: offset=\"z\": want a number")
    bad(TRACE % "<Send time='1' end='2'></Recv>\n", text=r"trc:2: </Recv> ends <Send> of line 2")
    bad(TRACE % "<Send time=1 end='2'/>\n", text=r"trc:2: <Send>: time=1 end='2'.*: want the value in quotes")
    bad(TRACE % "<Nested>\n", text=r"trc:3: </Program> ends <Nested> of line 2")
    bad("<Other/>", text=r"trc:1: want <Program")
    bad(TRACE % SEND + "<x/>", text=r"trc:4: want nothing behind </Program>")
    bad("", text=r"trc:1: want <Program")
    bad(TRACE % ("<a>" * 2000), text=r"trc:2: <a>: want a call")
    bad(TRACE % ("<Nested>" * 2000), text=r"trc:2: <Nested> is in 1000 others")
    bad(TRACE % ("<Send x='" + "y" * (2 << 20) + "' time='1' end='2'/>\n"), text="trc:2: a tag of more than a MiB")
    bad(os.urandom(3000), text=r"trc:\d+: ")


def test_malformed_projects_are_named_by_line():
    bad(trace=None, text=r"x.proj:4: the trace of this node is missing: want \S*x_n_0_0.trc")
    bad(project="<Application name='x'><Topology>", text=r"x.proj:1: the file ends within <Topology> of line 1: want </Topology>")
    bad(project=PROJECT % "<Wrong/>", text=r"x.proj:5: <Wrong> in <Application>: want one of Description, FileList")
    bad(project=PROJECT % "<FileList><File name='a'><InitialSize>many</InitialSize></File></FileList>", text=r'x.proj:5: InitialSize of a is "many": want bytes')
    bad(project=PROJECT % "<FileList><File/></FileList>", text=r"x.proj:5: <File>: want the attribute name")
    bad(project=PROJECT % "<CommunicatorList><Communicator><Rank global='x' local='0' cid='0'/></Communicator></CommunicatorList>",
        text=r'x.proj:5: <Rank>: global="x": want a rank')
    for far in 2**31, 2**32, 2**63 - 1:
        bad(project=PROJECT % f"<CommunicatorList><Communicator><Rank global='{far}' local='0' cid='0'/></Communicator></CommunicatorList>",
            text=rf'x.proj:5: <Rank>: global="{far}": want a rank')
        bad(info=f"Comm id=0 map='{far}->0;'\n", text=rf'info:1: Comm: map has "{far}->0": want WORLD->LOCAL')
    bad(project=PROJECT % "<Datatypes><Rank name='0'><VECTOR id='1' count='1' oldType='0'/></Rank></Datatypes>",
        text=r"x.proj:5: <VECTOR>: want the attribute blocklength")
    bad(info="Type id='x'\n", text=r"x_n_0_0.info:1: Type: id='x': want a number")
    bad(info="\nComm id=0 map='0->;'\n", text=r'info:2: Comm: map has "0->": want WORLD->LOCAL')
    bad(info="Thing id=0\n", text=r'info:1: "Thing": want File, Comm or Type')
    # A type in itself is none, and one in many others has no text without end.
    loops = "<Datatypes><Rank name='0'><DUP id='1' oldType='2'/><DUP id='2' oldType='1'/>" + \
        "".join(f"<STRUCT id='{i}' count='2'><Type id='{i - 1}' displacement='0' blocklen='1'/><Type id='{i - 1}' displacement='0' blocklen='1'/></STRUCT>"
                for i in range(3, 90)) + "</Rank></Datatypes>"
    bad(project=PROJECT % loops, trace=TRACE % "<Type_commit tid='89' time='1' end='2'/><Type_commit tid='1' time='2' end='2'/>\n")


def test_traces_alone_say_who_they_are():
    with Tmp() as tmp:
        project = make_project(tmp, 4)
        traces = sorted(glob.glob(os.path.join(tmp, "made_*.trc")))
        for order in (traces, traces[::-1]):
            r = feign("info", *order, "--json")
            assert r.status == 0, r.err
            assert [(s["stream"], s["host"], s["rank"], s["thread"]) for s in r.json()["streams"]] == [(1, "n0", 0, 0), (2, "n0", 1, 0), (3, "n1", 2, 0)]
        assert r.json()["activities"] == feign("info", project, "--json").json()["activities"]
        with open(os.path.join(tmp, "any.xml"), "w") as f:
            f.write("<Program rank='7' thread='2'>\n" + SEND + "</Program>\n")
        streams = feign("info", os.path.join(tmp, "any.xml"), "--json").json()["streams"]
        assert (streams[0]["rank"], streams[0]["thread"]) == (7, 2)
        # Ids of a lone trace are explained by its .info.
        with open(os.path.join(tmp, "x_n_3_0.trc"), "w") as f:
            f.write(TRACE % "<Bcast size='4' cid='1' tid='5' rootRank='2' time='1' end='2'/>\n<File_write fid='0' size='3' offset='9' time='3' end='4'/>\n")
        with open(os.path.join(tmp, "x_n_3_0.info"), "w") as f:
            f.write("Comm map='3->0;2->1;' id=1 name=''\nType id='0' combiner='MPI_COMBINER_NAMED' name='MPI_INT'\nFile name=\"ufs:/a b\" Size=44 id=0\n"
                    "Type id='5' combiner='MPI_COMBINER_HVECTOR' name='' integers='2;3;' addresses='-8;' types='0;'\n")
        bcast, write = text_of(os.path.join(tmp, "x_n_3_0.trc"))
        assert bcast["args"]["comm"] == '"#1{3,2}"' and bcast["args"]["datatype"] == '"hvector(2,3;-8;MPI_INT)"', bcast
        assert 'path="/a b"' in write["rest"] and "opened before the trace" in write["rest"] and " at=9" in write["rest"], write


def test_a_byte_order_mark_is_no_text():
    with Tmp() as tmp:
        project = make_project(tmp, 4)
        want = text_of(project)
        for path in [project, *glob.glob(os.path.join(tmp, "made_*.trc"))]:
            with open(path, "rb") as f:
                data = f.read()
            with open(path, "wb") as f:
                f.write(b"\xef\xbb\xbf" + data)
        assert text_of(project) == want


def test_memory_does_not_grow_with_the_trace():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "x_n_0_0.trc")

        def write(count):
            with open(trace, "w", encoding="ascii") as f:
                f.write("<Program>\n")
                for i in range(count):  # calls, calls in calls, and what is no call
                    f.write(f"<Nested>\n<Send size='4' toRank='0' toTag='1' cid='0' count='1' tid='0' time='{i}.1' end='{i}.2'/>\n</Nested>\n"
                            f"<Bcast size='4' cid='0' tid='0' rootRank='0' time='{i}.0' end='{i}.3'/>\n<Event name='x' time='{i}.4'/>\n")
                f.write("</Program>\n")
        bounded(write, "info", trace)
        assert feign("info", trace, "--json").json()["activities"] == 400000


def test_offsets_follow_from_the_view():
    with Tmp() as tmp:
        with open(os.path.join(tmp, "x_n_0_0.trc"), "w") as f:
            f.write(TRACE % "".join(f"<{tag} fid='0' {rest} time='{i + 1}' end='{i + 1}'/>\n" for i, (tag, rest) in enumerate([
                ("File_open", "name='/f' flags='9'"), ("File_write_at", "offset='10' size='4'"), ("File_set_view", "offset='100' etid='5' filetid='5'"),
                ("File_write_at", "offset='10' size='4'"), ("File_write", "offset='7' size='4'"), ("File_close", ""), ("File_open", "name='/f' flags='9'"),
                ("File_read_at", "offset='10' size='4'"), ("File_read_shared", "size='4'")])))
        with open(os.path.join(tmp, "x_n_0_0.info"), "w") as f:
            f.write("Type id='0' combiner='MPI_COMBINER_NAMED' name='MPI_INT'\nType id='5' combiner='MPI_COMBINER_CONTIGUOUS' integers='3;' types='0;'\n")
        got = [(re.search(r" at=(\d+)", a["rest"]) or [0, None])[1] for a in text_of(os.path.join(tmp, "x_n_0_0.trc")) if "write" in a["op"] or "read" in a["op"]]
        assert got == ["10", "220", "7", "10", None], got


def test_keep_going_counts_what_it_skips():
    with Tmp() as tmp:
        with open(os.path.join(tmp, "x_n_0_0.trc"), "w") as f:
            f.write(TRACE % (SEND + "<Send time='1' end='x'><a><b/></a></Send>\n" + SEND))
        r = feign("info", os.path.join(tmp, "x_n_0_0.trc"), "--keep-going", "--json")
        assert r.status == 0, r.err
        assert r.json()["activities"] == 2 and r.json()["left_out"][0]["why"] == "not understood", r.json()["left_out"]
        # What is in such a call is in no other one for that.
        inside = "<Nested>\n<Barrier cid='0' time='1.2' end='1.3'/>\n</Nested>\n"
        with open(os.path.join(tmp, "x_n_0_0.trc"), "w") as f:
            f.write(TRACE % (inside + "<Send size='x' time='1.1' end='1.4'/>\n" + SEND))
        got = text_of(os.path.join(tmp, "x_n_0_0.trc"), "--keep-going")
        assert [(c["op"], c["depth"]) for c in got] == [("Barrier", 0), ("Send", 0)], got


def test_what_is_no_call_is_not_held():
    with Tmp() as tmp:
        trace = os.path.join(tmp, "x_n_0_0.trc")
        with open(trace, "w") as f:
            f.write(TRACE % ("<Event name='x' time='1.4'/>\n" * ((1 << 18) + 1) + SEND))
        assert [c["op"] for c in text_of(trace)] == ["Send"]


def test_ranks_that_a_text_names_and_no_program_has():
    """They were counted up to, without end."""
    with Tmp() as tmp:
        project = make_project(tmp, 4)
        traces = sorted(glob.glob(os.path.join(tmp, "made_*.trc")))
        with open(traces[0], "w") as f:
            f.write(TRACE % f"<Barrier cid='w{{{2**63 - 1}}}' time='1' end='2'/>\n")
        for path in traces[1:] + glob.glob(os.path.join(tmp, "made_*.info")):
            os.unlink(path)
        os.unlink(project)
        converted(traces[0], os.path.join(tmp, "out.proj"))


def test_relations_become_dependencies():
    with Tmp() as tmp:
        p = lambda name: os.path.join(tmp, name)  # noqa: E731
        node = '<Node name="h"><Node name="%d"><Node name="0"/></Node></Node>'
        with open(p("x.proj"), "w") as f:
            f.write(f'<Application name="x"><Topology>{node % 0}{node % 1}</Topology></Application>')
        for rank, times in ((0, [(1, 2), (3, 4)]), (1, [(1.5, 1.6), (2.5, 2.6), (4.5, 5)])):
            with open(p(f"x_h_{rank}_0.trc"), "w") as f:
                f.write(TRACE % "".join(f"<Barrier cid='0' time='{a}' end='{b}'/>\n" for a, b in times))
        with open(p("x_h_0_0.rel"), "w") as f:
            f.write("<relation version='1' hostID='h' localToken='10' topologyNumber='0' timeAdjustment='5'><rel t='1' time='1.0'/></relation>")
        rel = "<relation version='1' hostID='h' localToken='11' topologyNumber='0' timeAdjustment='5'>%s</relation>"
        with open(p("x_h_1_0.rel"), "w") as f:
            f.write(rel % "<rel t='1' l='10:0:1' time='2.4'/><s name='x' t='1' time='2.5'/><e t='1' time='2.6'/><rel t='2' r='h:10:0:1' time='4.2'/><un t='1' time='5'/>")
        said = converted(p("x.proj"), p("y.proj"))
        assert re.search(r"2 dependencies: HDTrace has no place", said), said
        with open(p("x_h_1_0.rel"), "w") as f:
            f.write(rel % "<rel t='1' r='h:12:0:1' time='2.4'/>")
        refuses("info", p("x.proj"), text=r"x_h_1_0.rel:1: <rel>: its parent is of h:12:0, of which there is no .rel")


def statistics(path, records, values=("FLOAT", "INT64")):
    head = '<Statistics><TopologyNode><Label value="n"/></TopologyNode><Group name="Energy" timestampDatatype="EPOCH">' + \
        "".join(f'<Value name="v{i}" type="{t}" unit="W"/>' for i, t in enumerate(values)) + "</Group></Statistics>"
    data = f"{len(head):05}\n{head}".encode() + struct.pack(">ii", 100, 0)
    for i, (a, b) in enumerate(records):
        data += struct.pack(">iifq", 100 + i, 500, a, b)
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as f:
        f.write(data)
    return data


def test_statistics():
    with Tmp() as tmp:
        project = make_project(tmp, 3)
        data = statistics(os.path.join(tmp, "made_n0_Energy.stat"), [(1.5, 7), (2.5, -3), (0.5, 2)])
        assert "statistics" not in feign("info", project, "--json").json()
        r = feign("info", project, "--statistics", "--json")
        assert r.status == 0, r.err
        got = r.json()["statistics"]
        assert [(s["where"], s["group"], s["name"], s["records"], s["least"], s["mean"], s["greatest"]) for s in got] == \
            [("n", "Energy", "v0", 3, 0.5, 1.5, 2.5), ("n", "Energy", "v1", 3, -3, 2, 7)], got
        assert "Energy" in feign("info", project, "--statistics").out
        bad_file = os.path.join(tmp, "made_n1_Energy.stat")
        for cut in (3, 20, len(data) - 5):
            with open(bad_file, "wb") as f:
                f.write(data[:cut])
            refuses("info", project, "--statistics", text=r"made_n1_Energy.stat(:2: |: at byte \d+: ).*want")
        os.unlink(bad_file)
        if os.path.isdir(HDTRACE):
            for stat in glob.glob(os.path.join(HDTRACE, "*", "*.stat*")):
                r = feign("info", stat, "--statistics", "--json")
                assert r.status == 0 and r.json()["statistics"][0]["records"] > 0, (stat, r.err)


def test_golden():
    """A project of our own; UPDATE_GOLDEN=1 rewrites what it is as text, and as written again."""
    folder = os.path.join(TOP, "tests", "golden", "hdtrace")
    with Tmp() as tmp:
        source = os.path.join("tests", "golden", "hdtrace", "made.proj")
        for name in ("made.txt", "again.proj"):
            out = os.path.join(tmp, name)
            r = feign("convert", "-q", source, out, cwd=TOP)
            assert r.status == 0, r.err
        for name in ["made.txt"] + sorted(n for n in os.listdir(tmp) if n.startswith("again")):
            if os.environ.get("UPDATE_GOLDEN"):
                shutil.copy(os.path.join(tmp, name), os.path.join(folder, name))
            got, want = lines(os.path.join(tmp, name)), lines(os.path.join(folder, name))
            for number, (a, b) in enumerate(zip(want, got), 1):
                assert a == b, f"{name}:{number}\n  want {a}\n  got  {b}"
            assert len(got) == len(want), name


if __name__ == "__main__":
    main(globals())
