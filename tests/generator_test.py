#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The generator: a call's description becomes tables; a wrong one is told with file and line."""
import os
import re
import subprocess
import sys

from harness import TOP, Tmp, main

GENERATE = os.path.join(TOP, "layers", "generate.py")
GOOD = """//@ layer posix "a layer"
//@ names open O_CREAT O_EXCL
//@ op 1 openat kind=open effect=open result=fd
//@ args dir path flags:open mode
//@ replay c.open(a)
int openat(int dirfd, const char *pathname, int flags,
           mode_t mode);
//@ op 3 pwrite64 kind=write effect=pwrite result=bytes
//@ args fd buf length offset
ssize_t pwrite64(int fd, const void *buf, size_t count, off_t offset);
//@ left-out waits "waits for others" futex
"""


PLAIN = """//@ layer mpi "another layer" first=1000
//@ every site=text
//@ op 1 MPI_Send result=zero
//@ args size=length count datatype rank comm
//@ more parts=list
int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, MPI_Comm comm);
//@ alias MPI_Snd MPI_Send
"""


def generate(text):
    with Tmp() as tmp:
        header = os.path.join(tmp, "x.h")
        with open(header, "w") as f:
            f.write(text)
        outputs = {k: os.path.join(tmp, k) for k in ("ops-h", "ops-cc", "replay", "page", "does")}
        done = subprocess.run([sys.executable, GENERATE, header, *(w for k, v in outputs.items() for w in ("--" + k, v))],
                              stderr=subprocess.PIPE, text=True)
        made = {}
        for k, v in outputs.items():
            if os.path.exists(v):
                with open(v) as f:
                    made[k] = f.read()
        return done.returncode, done.stderr, made


def test_a_description_becomes_ids_arguments_dispatch_and_page():
    status, err, made = generate(GOOD)
    assert status == 0, err
    assert "FEIGN_POSIX_PWRITE64 = 3" in made["ops-h"]
    assert '{"offset", FEIGN_ARG_NUMBER, FEIGN_SLOT_OFFSET, 0, 0, nullptr}' in made["ops-cc"]
    assert '{"flags", Role::kFlags, Form::kPlain, 0, std::size(kNames_open), kNames_open, nullptr}' in made["ops-cc"]
    assert "return checked(::pwrite64(fd, c.out_buffer, c.fit(a.length), static_cast<off_t>(a.offset)));" in made["replay"]
    assert "| openat | 1 | open | fd |" in made["page"] and "futex" in made["page"]


def test_a_layer_without_effects_has_ids_and_arguments_alone():
    status, err, made = generate(PLAIN)
    assert status == 0, err
    assert "FEIGN_MPI_SEND = 1001" in made["ops-h"] and "mpi_calls" not in made["ops-h"]
    # Values are at the next free index, a list behind them all.
    for row in ('{"size", FEIGN_ARG_NUMBER, FEIGN_SLOT_LENGTH, 0', '{"count", FEIGN_ARG_NUMBER, FEIGN_SLOT_VALUE, 0', '{"type", FEIGN_ARG_STRING, FEIGN_SLOT_VALUE, 1',
                '{"dest", FEIGN_ARG_NUMBER, FEIGN_SLOT_VALUE, 2', '{"comm", FEIGN_ARG_STRING, FEIGN_SLOT_VALUE, 3', '{"site", FEIGN_ARG_STRING, FEIGN_SLOT_VALUE, 4',
                '{"parts", FEIGN_ARG_LIST, FEIGN_SLOT_VALUE, 5', '{"MPI_Snd", 1001}'):
        assert row in made["ops-cc"], (row, made["ops-cc"])
    for before, after, want in (("parts=list", "parts", "x.h:5: more parts: want NAME=ROLE"), ("size=length count", "size=list count", "x.h:6: two lists"),
                                ("first=1000", "last=1", 'x.h:1: "last": want first=')):
        status, err, _ = generate(PLAIN.replace(before, after))
        assert status != 0 and want in err, (want, err)


def header(name):
    with open(os.path.join(TOP, "layers", name), encoding="utf-8") as f:
        return f.read()


NEW_CALL = """//@ op 400 MPI_Neighbour_meeting does=meet result=zero
//@ args size=length count datatype comm
int MPI_Neighbour_meeting(const void *buf, int count, MPI_Datatype datatype, MPI_Comm comm);
"""


def test_what_a_call_does_about_others_is_said_where_it_is_described():
    """Nowhere else are calls listed: a new one is in the table of both plug-ins by its description alone."""
    status, err, made = generate(header("mpi.h") + NEW_CALL)
    assert status == 0, err
    rows = re.findall(r"    Does::(\w+),\n", made["does"])
    assert rows[399] == "kMeet" and rows[398] == "kNothing" and len(rows) == 400
    status, err, _ = generate(header("mpi.h") + NEW_CALL.replace(" does=meet", ""))
    assert status != 0 and re.search(r"x.h:\d+: op MPI_Neighbour_meeting .*want does=nothing\|begin\|send", err), err
    status, err, _ = generate(header("mpi.h") + NEW_CALL.replace("does=meet", "does=meat"))
    assert status != 0 and 'does "meat": want one of nothing, begin, send' in err, err


def test_every_call_that_concerns_others_says_how():
    does = {}
    for name in ("mpi.h", "mpiio.h"):
        does |= {m[1]: m[2] for m in re.finditer(r"^//@ op \d+ MPI_(\w+)(?:.* does=(\S+))?", header(name), re.M)}
    of = lambda pattern: {does[name] for name in does if re.fullmatch(pattern, name)}
    assert of(r"[BSRI]?[bsr]?send") == {"send"} and of(r"I?m?recv|Recv|Mrecv") == {"receive"}
    assert of(r"[BSR]?s?end_init") == {"keep-send"} and of(r"I?m?probe|[MP]r?probe") == {"probe"}
    assert of(r"(Wait|Test)(all)?") == {"end"} and of(r"(Wait|Test)(any|some)") == {"end-some"}
    assert of(r"I?(barrier|allgatherv?|alltoall[vw]?|allreduce|reduce_scatter(_block)?)|Barrier|All(gatherv?|toall[vw]?|reduce)") == {"meet"}
    assert of(r"I?([Bb]cast|[Ss]catterv?)") == {"from-root"} and of(r"I?([Rr]educe|[Gg]atherv?)") == {"to-root"}
    assert of(r"I?([Ss]can|[Ee]xscan)") == {"upwards"} and of(r"(N|In)eighbor_.*") == {"neighbours"}
    assert of(r"File_.*(_all|_ordered|_begin)") == {"meet"} and of(r"File_i(read|write)(_at|_shared)?") == {"begin"}
    assert of(r"(R?(put|get|accumulate)|R?get_accumulate|Put|Get|Accumulate|Win_(lock|flush|unlock).*)") == {"window"}


def test_what_is_wrong_is_told_with_file_and_line():
    for before, after, want in (
        ("kind=write", "kind=wirte", 'x.h:8: kind "wirte": want one of'),
        ("fd buf length offset", "fd bfu length offset", 'x.h:10: role "bfu": want one of'),
        ("fd buf length offset", "fd buf length", "x.h:10: pwrite64: 3 roles for 4 parameters"),
        ("op 3 pwrite64", "op 1 pwrite64", "x.h:8: op 1 pwrite64 is there twice"),
        ("flags:open", "flags:opne", 'x.h:7: names "opne" are not defined'),
        ("//@ names open", "//@ nmaes open", 'x.h:2: annotation "nmaes"'),
        ("ssize_t pwrite64(", "ssize_t pwrite(", "x.h:10: prototype"),
        ("result=fd", "result=df", 'x.h:3: result "df"'),
    ):
        status, err, _ = generate(GOOD.replace(before, after))
        assert status != 0 and want in err, (want, err)


if __name__ == "__main__":
    main(globals())
