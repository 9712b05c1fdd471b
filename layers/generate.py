#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a layer's tables from its annotated header (the language is described in posix.h).

usage: generate.py HEADER --ops-h FILE --ops-cc FILE --replay FILE --page FILE
                   [--does FILE] [--capture FILE] [--wrappers FILE] [--mpi-capture FILE]
"""

import argparse
import os
import re
import shlex
import sys

from signature import Bad, Signature

KINDS = "other open close read write seek stat list change size flush dup process".split()
RESULTS = {"bytes": "EXACT", "zero": "EXACT", "position": "EXACT", "number": "EXACT",
           "fd": "SUCCESS", "pid": "SUCCESS", "any": "SUCCESS"}
# What a call does about other ranks (layers/mpi.h), as enum Does has it (core/trace/does.h).
DOES = """nothing begin send receive send-receive keep-send keep-receive probe start end end-some request meet from-root to-root
upwards neighbours make-comm make-window meet-window window make-type init finalize""".split()
# role: (C++ Role, feign_arg_type, feign_slot)
ROLES = {
    "-": ("kSkip", "NUMBER", "NONE"), "fd": ("kFd", "FD", "HANDLE"), "fd2": ("kFd2", "FD", "HANDLE2"),
    "dir": ("kDir", "FD", "HANDLE"), "dir2": ("kDir2", "FD", "HANDLE2"),
    "path": ("kPath", "PATH", "PATH"), "path2": ("kPath2", "PATH", "PATH2"),
    "text2": ("kText2", "PATH", "PATH2"), "buf": ("kBuffer", "BUFFER", "NONE"),
    "readback2": ("kReadback2", "PATH", "PATH2"), "names": ("kNames", "PATH", "PATH2"), "length": ("kLength", "NUMBER", "LENGTH"),
    "offset": ("kOffset", "NUMBER", "OFFSET"), "flags": ("kFlags", "FLAGS", "FLAGS"),
    "mode": ("kMode", "MODE", "MODE"), "value": ("kValue", "NUMBER", "VALUE"),
    "iov": ("kIov", "LIST", "VALUE"), "stat": ("kStat", "BUFFER", "NONE"),
    "statx": ("kStatx", "BUFFER", "NONE"), "acl": ("kAcl", "BUFFER", "NONE"), "fds": ("kFds", "LIST", "VALUE"),
    "rights": ("kRights", "BUFFER", "NONE"),
    "at": ("kAt", "NUMBER", "VALUE"), "times": ("kTimes", "LIST", "VALUE"),
    "result": ("kResult", "NUMBER", "NONE"), "iocbs": ("kIocbs", "NUMBER", "NONE"),
    "rank": ("kValue", "NUMBER", "VALUE"), "tag": ("kValue", "NUMBER", "VALUE"),
    "count": ("kValue", "NUMBER", "VALUE"), "request": ("kValue", "NUMBER", "VALUE"),
    "comm": ("kValue", "STRING", "VALUE"), "datatype": ("kValue", "STRING", "VALUE"),
    "text": ("kValue", "STRING", "VALUE"), "list": ("kValue", "LIST", "VALUE"),
}


# What a third party's library has beside those (layers/library.py), and which of those it has.
LIBRARY_ROLES = {
    "handle": ("kFd", "FD", "HANDLE"), "handle-at": ("kFd", "FD", "HANDLE"), "handle2": ("kFd2", "FD", "HANDLE2"),
    "new": ("kFd2", "FD", "HANDLE2"), "out": ("kSkip", "NUMBER", "NONE"),
    **{role: ROLES[role] for role in "- path path2 text buf length offset flags mode value count result".split()},
}


class Arg:
    def __init__(self, text, param, form="kPlain", member=None, roles=ROLES):
        parts = text.split(":")
        self.form, self.member = form, member
        self.role = parts[0]
        if self.role not in roles:
            raise Bad(f'role "{text}": want one of {", ".join(roles)}')
        self.slot = roles[self.role][2]
        self.index = 0
        self.group = ""
        rest = parts[1:]
        self.placed = self.slot != "VALUE" or self.role in ("iov", "fds", "times")
        if rest and rest[0].isdigit() and not self.placed:
            self.index = int(rest.pop(0))
            self.placed = True
        if self.role == "at" and not self.placed:
            raise Bad(f'role "{text}": want {self.role}:INDEX')
        if rest:
            self.group = rest.pop(0)
        if rest:
            raise Bad(f'role "{text}": want ROLE, ROLE:GROUP or ROLE:INDEX:GROUP')
        self.name = member or param or self.role
        self.position, self.type = None, ""   # of the parameter that holds it


def arguments(text, param, roles=ROLES):
    """The kept arguments that one parameter holds: one, or a struct's members."""
    if name := re.match(r"(\w+)=(.*)", text):
        return [Arg(name[2], name[1], roles=roles)]
    if not text.startswith("struct:"):
        return [Arg(text, param, roles=roles)]
    out = []
    for part in text[len("struct:"):].split(","):
        member, equals, role = part.partition("=")
        if not equals:
            raise Bad(f'role "{text}": want struct:MEMBER=ROLE,…')
        out.append(Arg(role, param, "kMember" if out else "kStruct", member, roles))
    return out


def place(args):
    """Gives values without an index the next free ones; a list, which has no end, the last."""
    taken = {a.index for a in args if a.placed and a.slot == "VALUE"}
    for a in sorted((a for a in args if not a.placed), key=lambda a: a.role == "list"):
        a.index, a.placed = next(i for i in range(len(args) + 1) if i not in taken), True
        taken.add(a.index)
    if sum(a.role == "list" for a in args) > 1:
        raise Bad("two lists: want one, which takes all values that are left")


class Op:
    def __init__(self, number, name, fields, library=False):
        self.number, self.name = number, name
        self.kind = fields.get("kind", "other")
        self.effect = fields.get("effect")
        self.result = fields.get("result", "zero")
        self.fails = fields.get("fails")
        self.does = fields.get("does")
        self.nofollow = "nofollow" in fields
        self.cloexec = fields.get("cloexec")
        self.foreign = "foreign" in fields   # brings descriptors of another process: the result, or in a message
        self.persistent = None   # what makes a request whose every start is this call
        self.args, self.replay, self.prototype = [], None, ""
        self.capture, self.variants = {} if library else None, []   # of a library's calls: what a wrapper keeps
        self.signature = None   # of a third party's
        self.line = 0


class Layer:
    def __init__(self):
        self.name, self.summary, self.first = "", "", 0
        self.every = []
        self.groups, self.ops, self.left_out, self.aliases = {}, [], [], []


def words(text):
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Bad(f"{text}: {error}") from None


def keys_of(fields, known):
    """KEY=VALUE …, and what stands alone as a key without a value."""
    keys = dict(f.partition("=")[::2] for f in fields)
    for key in keys:
        if key not in known and key + "=" not in known:
            raise Bad(f'"{key}": want {", ".join(known) or "no more here"}')
    return keys


def one_of(what, text, known):
    if text not in known:
        raise Bad(f'{what} "{text}": want one of {", ".join(known)}')
    return text


class Parser:
    """Reads a header line by line. In one of a third party's, what is not annotated is passed over."""

    ANNOTATIONS = "layer names op args more every replay capture variant persistent alias left-out".split()
    LIBRARY_ANNOTATIONS = "layer fails names op args capture replay alias".split()
    LIBRARY_RESULTS = {"bytes": "EXACT", "zero": "EXACT", "position": "EXACT", "number": "EXACT",
                       "handle": "SUCCESS", "any": "SUCCESS"}
    FAILS = ("errno", "negative", "code", "nonzero", "zero", "never")

    def __init__(self, library=False):
        self.layer, self.library = Layer(), library
        self.fails = "errno"
        self.in_comment = False
        self.begin(None)

    def begin(self, op):
        self.op, self.arg_texts, self.more, self.proto = op, [], [], ""

    def line(self, line):
        stripped = line.strip()
        if self.library:
            if not self.in_comment and stripped.startswith("//@"):
                return self.annotation(stripped[3:].strip())
            return self.text(self.without_comments(line))
        if self.in_comment:
            self.in_comment = "*/" not in stripped
        elif stripped.startswith("/*"):
            self.in_comment = "*/" not in stripped
        elif stripped.startswith("//@"):
            self.annotation(stripped[3:].strip())
        elif stripped and not stripped.startswith("//"):
            if not self.op:
                raise Bad("a prototype without an op annotation")
            self.text(stripped)
        return None

    def without_comments(self, line):
        out = ""
        while line:
            if self.in_comment:
                _, self.in_comment, line = line.partition("*/")
                self.in_comment = not self.in_comment
                continue
            block, end = line.find("/*"), line.find("//")
            if end >= 0 and (block < 0 or end < block):
                return out + line[:end]
            if block < 0:
                return out + line
            out, line, self.in_comment = out + line[:block] + " ", line[block + 2:], True
        return out

    def text(self, text):
        text = text.strip()
        if not self.op or not text:
            return
        if self.library and (text.startswith("#") or "{" in text.partition(";")[0]):
            raise Bad(f'op {self.op.name}: "{text}": want its prototype here')
        self.proto += " " + text
        if ";" in text if self.library else text.endswith(";"):
            self.prototype(self.proto.partition(";")[0].strip() if self.library else self.proto.strip().rstrip(";"))

    def annotation(self, body):
        layer, (word, _, rest) = self.layer, body.partition(" ")
        one_of("annotation", word, self.LIBRARY_ANNOTATIONS if self.library else self.ANNOTATIONS)
        if word in ("args", "more", "replay", "capture") and not self.op:
            raise Bad(f"{word} {rest}: there is no op above")
        if word == "replay":
            self.op.replay = rest.strip()
            return
        fields = words(rest) if word != "variant" else []
        least = {"layer": 2, "names": 1, "op": 2, "alias": 2, "fails": 1, "left-out": 2}.get(word, 0)
        if len(fields) < least:
            raise Bad(f'{word} {rest}: want {least} words or more')
        if word == "capture":
            self.op.capture = {} if fields == ["none"] and not self.library else dict(f.partition("=")[::2] for f in fields)
            if self.library:
                keys_of(fields, ("result=", "length=", "before=", "call="))
        elif word == "variant":
            variant, _, keys = rest.partition("|")
            if not layer.ops:
                raise Bad(f"variant {rest}: there is no op above")
            layer.ops[-1].variants.append((variant.strip(), dict(f.partition("=")[::2] for f in words(keys))))
        elif word == "layer":
            if layer.name:
                raise Bad(f"layer {fields[0]}: there is layer {layer.name} above")
            layer.name, layer.summary = fields[:2]
            layer.first = int(keys_of(fields[2:], () if self.library else ("first=",)).get("first", 0))
        elif word == "fails":
            self.fails = one_of("fails", fields[0], self.FAILS)
        elif word == "names":
            layer.groups[fields[0]] = fields[1:]
            if self.library and not all(re.fullmatch(r"[A-Za-z_]\w*(=.+)?", f) for f in fields):
                raise Bad(f"names {rest}: want GROUP CONSTANT[=VALUE] …")
        elif word == "persistent":
            op = layer.ops[-1] if layer.ops and not self.op else None
            if op is None or op.persistent or len(fields) != 1 or layer.name != "mpi" or not any(a.name == "request" for a in op.args):
                raise Bad(f"persistent {rest}: want NAME, once, behind the prototype of a call of layer mpi with a request")
            op.persistent = fields[0]
        elif word == "op":
            self.described(fields)
        elif word == "args":
            self.arg_texts = fields
        elif word in ("more", "every"):
            if not all(re.match(r"\w+=", f) for f in fields):
                raise Bad(f"{word} {rest}: want NAME=ROLE …")
            if word == "more":
                self.more = fields
            else:
                layer.every += fields
        elif word == "alias":
            if len(fields) != 2:
                raise Bad(f"alias {rest}: want NAME OP")
            name, described = fields
            if not any(o.name == described for o in layer.ops):
                raise Bad(f"alias {name}: there is no op {described} above")
            if self.library and (not re.fullmatch(r"[A-Za-z_]\w*", name) or any(o.name == name for o in layer.ops) or name in dict(layer.aliases)):
                raise Bad(f'alias "{name}": want a name that is not described yet')
            layer.aliases.append((name, described))
        elif word == "left-out":
            if fields[0] not in PASSED:
                raise Bad(f'left-out {fields[0]}: want {"|".join(PASSED)}')
            for name in fields[2:]:
                layer.left_out.append((name, fields[1], fields[0]))

    def described(self, fields):
        if self.op:
            raise Bad(f"op {self.op.name} has no prototype")
        if self.library and not self.layer.name:
            raise Bad(f'op {fields[1]}: want //@ layer NAME "what it is" above it')
        if not re.fullmatch(r"[0-9]{1,4}", fields[0]) or not 1 <= int(fields[0]) <= 4095:
            raise Bad(f'op "{fields[0]}": want a number from 1 to 4095, which is for ever')
        keys = keys_of(fields[2:], ("kind=", "result=", "fails=") if self.library else ("kind=", "effect=", "does=", "result=", "cloexec=", "nofollow", "foreign"))
        op = Op(int(fields[0]), fields[1], keys, self.library)
        kinds = [k for k in KINDS if k not in ("dup", "process")] if self.library else KINDS
        one_of("kind", op.kind, kinds)
        if op.cloexec not in (None, "always") and not re.fullmatch(r"[1-9][0-9]{0,8}", op.cloexec):
            raise Bad(f'cloexec "{op.cloexec}": want a flag as a number, or always')
        one_of("result", op.result, self.LIBRARY_RESULTS if self.library else RESULTS)
        if op.does:
            one_of("does", op.does, DOES)
        if self.library:
            op.fails = one_of("fails", op.fails or self.fails, self.FAILS)
        if any(o.number == op.number or o.name == op.name for o in self.layer.ops):
            raise Bad(f"op {op.number} {op.name} is there twice")
        self.begin(op)

    def prototype(self, text):
        op, layer = self.op, self.layer
        op.prototype = text
        roles = LIBRARY_ROLES if self.library else ROLES
        if self.library:
            op.signature = Signature(text, op.name)
            params = [p.text for p in op.signature.params]
        else:
            match = re.match(r".*?\b(\w+)\s*\((.*)\)$", text)
            if not match or match.group(1) != op.name:
                raise Bad(f'prototype "{text}" is not that of {op.name}')
            params = [p.strip() for p in match.group(2).split(",")]
            params = [] if params == ["void"] else params
        if len(self.arg_texts) != len(params):
            raise Bad(f"{op.name}: {len(self.arg_texts)} roles for {len(params)} parameters")
        for i, (text, param) in enumerate(zip(self.arg_texts, params)):
            if self.library:
                name = op.signature.params[i].name
            else:
                name = re.sub(r"\[\d*\]", "", param).split()[-1].lstrip("*")
                if param == "..." or (text == "length" and "*" in param):
                    name = None   # a text's length goes by its role
            for arg in arguments(text, name, roles):
                arg.position = i
                arg.type = op.signature.params[i].type if self.library else param.rpartition(param.split()[-1].lstrip("*"))[0]
                if arg.group and arg.group not in layer.groups:
                    raise Bad(f'names "{arg.group}" are not defined')
                op.args.append(arg)
        for text in self.more + layer.every:
            op.args += arguments(text, "")
        place(op.args)
        if self.library:
            op.signature.check(op)
        layer.ops.append(op)
        self.begin(None)


def parse(path, library=False):
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
    except OSError as error:
        raise Bad(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Bad(f"{path}: want text in UTF-8") from None
    parser, number = Parser(library), 0
    for number, line in enumerate(lines, 1):
        try:
            parser.line(line)
        except Bad as error:
            raise Bad(f"{path}:{number}: {error}") from None
        if parser.op:
            parser.op.line = number
    if parser.op:
        raise Bad(f"{path}:{number}: op {parser.op.name} has no prototype")
    for op in parser.layer.ops:
        if not op.does and any(o.does for o in parser.layer.ops) and concerns_others(op):
            raise Bad(f"{path}:{op.line}: op {op.name} has a request, or data and a communicator or window: want does={'|'.join(DOES)}")
    parser.layer.ops.sort(key=lambda o: o.number)
    return parser.layer


def concerns_others(op):
    """Whether an op is one of those whose `does` must not be forgotten."""
    types = {(a.type.strip(), a.role) for a in op.args}
    with_others = any(kind in ("MPI_Comm", "MPI_Win") for kind, _ in types)
    return any("MPI_Request" in kind or role == "request" for kind, role in types) or \
        with_others and any(role == "datatype" for _, role in types)


def camel(word):
    return "k" + "".join(part.capitalize() for part in re.split("[_-]", word))


def constant(layer, op):
    """FEIGN_MPI_SEND of MPI_Send, FEIGN_POSIX_OPEN of open."""
    name = op.name[4:] if op.name.startswith("MPI_") else op.name
    return f"FEIGN_{layer.name.upper()}_{name.upper()}"


HEAD = "// Made by layers/generate.py: do not edit.\n"


# What becomes of a call in a replay, by what layers/posix.h has it replayed with.
IN_A_REPLAY = {"nothing": "kept account of", "chdir": "kept account of", "forks": "kept account of", "ends": "kept account of",
               "waits": "order kept", "wakes": "order kept", "skip": "not made"}


def in_a_replay(op):
    how = re.match(r"c\.(\w+)\(", op.replay or "")
    return IN_A_REPLAY.get(how.group(1), "made") if how and op.kind != "close" else "made"


def has_effects(layer):
    """Whether resolve is told of its calls. The handles of the others are their provider's."""
    return any(op.effect for op in layer.ops)


def ops_h(layer):
    out = [HEAD, "#pragma once\n", "#include <span>\n", '#include "feign.h"\n', '#include "trace/call.h"\n\n']
    out.append("enum {\n")
    for op in layer.ops:
        out.append(f"  {constant(layer, op)} = {layer.first + op.number},\n")
    out.append(f"  FEIGN_{layer.name.upper()}_FIRST = {layer.first + 1},\n")
    out.append("};\n\nnamespace feign {\n\n")
    out.append("// The layer as a plug-in registers one: its first op has the id …_FIRST, and so on.\n")
    out.append(f"const feign_layer& {layer.name}_layer();\n")
    if has_effects(layer):
        out.append("// By op id.\n")
        out.append(f"std::span<const Call> {layer.name}_calls();\n")
    out.append(f"std::span<const LeftOutCall> {layer.name}_left_outs();\n")
    out.append(f"std::span<const CallAlias> {layer.name}_aliases();\n\n")
    out.append("}  // namespace feign\n")
    return "".join(out)


def does(layer):
    by_number = {op.number: op for op in layer.ops}
    rows = [by_number[i].does if i in by_number else None for i in range(1, layer.ops[-1].number + 1)]
    name = layer.name.capitalize()
    return (HEAD + '#pragma once\n#include <cstdint>\n#include <iterator>\n\n#include "trace/does.h"\n\nnamespace feign {\n\n'
            f"inline constexpr Does k{name}Does[] = {{\n" + "".join(f"    Does::{camel(row or 'nothing')},\n" for row in rows) +
            f"}};\n// Of any op: nothing, if it is of another layer.\nconstexpr Does {layer.name}_does(uint32_t op) {{\n"
            f"  const uint32_t at = op - {layer.first + 1};\n"
            f"  return at < std::size(k{name}Does) ? k{name}Does[at] : Does::kNothing;\n}}\n\n}}  // namespace feign\n")


def ops_cc(layer):
    n = layer.name
    out = [HEAD, "#include <fcntl.h>\n#include <sys/file.h>\n#include <sys/stat.h>\n#include <unistd.h>\n\n#include <array>\n#include <cstdio>\n\n",
           f'#include "layers/{n}_ops.h"\n\nnamespace feign {{\nnamespace {n}_tables {{\nnamespace {{\n\n']
    for group, names in layer.groups.items():
        out.append(f"constexpr feign_name kNames_{group}[] = {{\n")
        for name in names:
            text, _, value = name.partition("=")
            out.append(f'    {{"{text}", static_cast<uint64_t>({value or text})}},\n')
        out.append("};\n")

    def quoted(member):
        return "nullptr" if member is None else f'"{member}"'

    def names_of(arg):
        if not arg.group:
            return "0, nullptr"
        return f"std::size(kNames_{arg.group}), kNames_{arg.group}"

    for op in layer.ops:
        if op.args:
            out.append(f"constexpr feign_arg_info kArgs_{op.name}[] = {{\n")
            for a in op.args:
                role, kind, slot = ROLES[a.role]
                if a.role == "mode" and a.group:
                    kind = "FLAGS"
                out.append(f'    {{"{a.name}", FEIGN_ARG_{kind}, FEIGN_SLOT_{slot}, {a.index}, {names_of(a)}}},\n')
            out.append("};\n")
        if op.args and has_effects(layer):
            out.append(f"constexpr CallArg kCallArgs_{op.name}[] = {{\n")
            for a in op.args:
                out.append(f'    {{"{a.name}", Role::{ROLES[a.role][0]}, Form::{a.form}, {a.index}, {names_of(a)}, {quoted(a.member)}}},\n')
            out.append("};\n")
        args = f"kArgs_{op.name}" if op.args else "nullptr"
        out.append(f'constexpr feign_op_info kOp_{op.name} = {{sizeof(feign_op_info), 0, "{op.name}", "{n}", '
                   f"FEIGN_KIND_{op.kind.upper()}, FEIGN_RESULT_{RESULTS[op.result]}, {len(op.args)}, "
                   f"sizeof(feign_arg_info), {args}}};\n")
    last = layer.ops[-1].number
    by_number = {op.number: op for op in layer.ops}
    out.append("constexpr const feign_op_info* kOps[] = {\n")
    for i in range(1, last + 1):
        out.append(f"    &kOp_{by_number[i].name},\n" if i in by_number else "    nullptr,\n")
    out.append(f'}};\nconstexpr feign_layer kLayer = {{sizeof(feign_layer), std::size(kOps), "{n}", kOps}};\n')
    if has_effects(layer):
        out.append("constexpr Call kCalls[] = {\n    {nullptr, 0, 0, Effect::kUse, false, false, nullptr, nullptr},\n")
        for i in range(1, last + 1):
            op = by_number.get(i)
            if not op:
                out.append("    {nullptr, 0, 0, Effect::kUse, false, false, nullptr, nullptr},\n")
                continue
            args = f"kCallArgs_{op.name}" if op.args else "nullptr"
            nofollow, zero = ("true" if what else "false" for what in (op.nofollow, op.result == "zero"))
            effect = camel(op.effect or "use")
            cloexec = {None: "", "always": ", Call::kAlways"}.get(op.cloexec, f", {op.cloexec}")
            out.append(f'    {{"{op.name}", {op.number}, {len(op.args)}, Effect::{effect}, {nofollow}, {zero}, "{in_a_replay(op)}", {args}{cloexec}}},\n')
        out.append("};\n")
    out.append(f"constexpr std::array<LeftOutCall, {len(layer.left_out)}> kLeftOut = {{{{\n")
    for name, why, passed in layer.left_out:
        out.append(f'    {{"{name}", "{why}", {PASSED[passed][0]}, {str(passed == "asks").lower()}}},\n')
    out.append(f"}}}};\nconstexpr std::array<CallAlias, {len(layer.aliases)}> kAliases = {{{{\n")
    numbers = {op.name: layer.first + op.number for op in layer.ops}
    for name, described in layer.aliases:
        out.append(f'    {{"{name}", {numbers[described]}}},\n')
    out.append(f"}}}};\n\n}}  // namespace\n}}  // namespace {n}_tables\n\n")
    out.append(f"const feign_layer& {n}_layer() {{ return {n}_tables::kLayer; }}\n")
    if has_effects(layer):
        out.append(f"std::span<const Call> {n}_calls() {{ return {n}_tables::kCalls; }}\n")
    out.append(f"std::span<const LeftOutCall> {n}_left_outs() {{ return {n}_tables::kLeftOut; }}\n")
    out.append(f"std::span<const CallAlias> {n}_aliases() {{ return {n}_tables::kAliases; }}\n\n}}  // namespace feign\n")
    return "".join(out)


def plain_call(op):
    values = []
    for a in op.args:
        values.append({
            "fd": "fd", "fd2": "fd2", "buf": "c.out_buffer" if op.kind == "write" else "c.read_buffer",
            "length": "c.fit(a.length)" if op.kind in ("read", "write") else "a.length",
            "offset": "static_cast<off_t>(a.offset)", "flags": "static_cast<int>(a.flags)",
            "mode": "a.mode", "value": f"c.value(a, {a.index})",
        }.get(a.role))
        if values[-1] is None:
            raise Bad(f"{op.name}: parameter {a.name} needs a replay expression")
        if a.role == "length" and "off_t" in op.prototype.split(a.name)[0].rsplit(",", 1)[-1]:
            values[-1] = "static_cast<off_t>(a.length)"
    return f"::{op.name}({', '.join(values)})"


def data_calls(layer):
    """Of a layer of MPI: the calls that move data of a file, by op; the replayer knows what goes in."""
    given = {"MPI_File": "c.file", "void": "c.at", "int": "c.count", "MPI_Datatype": "c.type", "MPI_Offset": "c.offset",
             "MPI_Status": "c.status", "MPI_Request": "c.request"}
    rows, by_number = [], {op.number: op for op in layer.ops}
    for i in range(1, layer.ops[-1].number + 1):
        op = by_number.get(i)
        if not op or op.kind not in ("read", "write"):
            rows.append("    {nullptr, false},\n")
            continue
        kinds = [re.sub(r"\bconst\b", "", p).split()[0].rstrip("*") for p in re.search(r"\((.*)\)$", op.prototype)[1].split(",")]
        if unknown := set(kinds) - set(given):
            raise Bad(f"{op.name}: {', '.join(unknown)}: want parameters of the types {', '.join(given)}")
        rows.append(f"    {{[](Data& c) {{ return {op.name}({', '.join(given[k] for k in kinds)}); }}, "
                    f"{'true' if 'MPI_Status' in kinds else 'false'}}},\n")
    return f"constexpr DataCall k{layer.name.capitalize()}Data[] = {{\n" + "".join(rows) + "};\n"


def replay(layer):
    if not has_effects(layer):
        return HEAD + (data_calls(layer) if layer.name == "mpiio" else "")   # the others have no replayer made from here
    out = [HEAD, f"constexpr Doing k{layer.name.capitalize()}Doings[] = {{\n    {{}},\n"]
    by_number = {op.number: op for op in layer.ops}
    for i in range(1, layer.ops[-1].number + 1):
        op = by_number.get(i)
        if not op:
            out.append("    {},\n")
            continue
        # Where one of two ends may be no file, the call itself sees to it.
        needs = any(a.role == "fd" for a in op.args) and op.kind not in ("process", "close") and op.effect not in ("copy", "map")
        expression = op.replay or plain_call(op)
        own = expression.startswith("c.")
        body = f"return {expression};" if own else f"return checked({expression});"
        if "fd2" in re.findall(r"\w+", expression):
            body = "const int fd2 = c.descriptor(a.handle2);\n       " + body
        out.append("    {[](Context& c, const feign_activity& a, int fd) -> int64_t {\n"
                   f"       (void)c, (void)a, (void)fd;\n       {body}\n     }}, "
                   f"FEIGN_KIND_{op.kind.upper()}, Effect::{camel(op.effect or 'use')}, {'true' if needs else 'false'}}},\n")
    out.append("};\n")
    return "".join(out)


# ---- capture of system calls (capture/hook.c): what is behind `put_…` is in arguments.c ----------------

def number(arg, at=None):
    """A kept number of a system call, as wide as its parameter."""
    text = f"a[{arg.position if at is None else at}]"
    if "*" in arg.type or re.search(r"long|size_t|off_t|64|aio_context_t", arg.type):
        return f"(uint64_t){text}"
    if re.search(r"unsigned|uint32_t|mode_t", arg.type):
        return f"(uint32_t){text}"
    return f"(uint64_t)(int){text}"


def put(op, arg, befores):
    """The statement that keeps an argument of a system call."""
    i, field = arg.position, "FEIGN_FIELD_" + ROLES[arg.role][2]
    if arg.form in ("kStruct", "kMember"):
        value = f"{op.name}_{i}->{arg.member}"
        if arg.role == "acl":
            size = next(a.member for a in op.args if a.position == i and a.role == "length")
            return f"if ({op.name}_{i} != 0) put_acl(r, (long){value}, (long){op.name}_{i}->{size}, result);"
        return f"if ({op.name}_{i} != 0) " + (
            f"feign_put_value_at(r, {arg.index}, (uint64_t){value});" if arg.role == "value"
            else f"feign_put_number(r, {field}, {value});")
    if arg.role in ("fd", "fd2"):
        return f"feign_put_fd(r, {field}, (int)a[{i}]);"
    if arg.role in ("dir", "dir2"):
        return f"feign_put_dir(r, {field}, (int)a[{i}]);"
    if arg.role == "path" and op.effect == "getcwd":
        return f"put_output(r, {field}, a[{i}], result - 1);"
    if op.effect == "readlink" and arg.role == "path":
        return f"put_string(r, {field}, a[{i}], of_readlink(result, a[{i + 2}]));"
    if arg.role in ("path", "path2", "text2"):
        return f"put_string(r, {field}, a[{i}], result);"
    if arg.role == "readback2":
        return f"put_output(r, {field}, a[{i}], result);"
    if arg.role in ("length", "offset"):
        return f"feign_put_{arg.role}(r, {number(arg)});"
    if arg.role in ("flags", "mode"):
        if op.name == "clone":
            i = 0   # the kernel's order of arguments is not its prototype's
        elif op.name in ("preadv2", "pwritev2"):
            i = 5   # a position has two halves
        return f"feign_put_{arg.role}(r, (uint32_t)a[{i}]);"
    if arg.role == "value":
        return f"feign_put_value_at(r, {arg.index}, {number(arg)});"
    if arg.role == "at" and "off_t" in arg.type:
        befores.append(i + 1)
        return f"feign_put_value_at(r, {arg.index}, before[{len(befores) - 1}]);"
    if arg.role == "at":
        return f"if (result == 0) feign_put_value_at(r, {arg.index}, *(const uint64_t *)a[{i}]);"
    if arg.role == "iov":
        return f"put_iov(r, a[{i}], a[{i + 1}], result);"
    if arg.role in ("stat", "statx", "fds"):
        return f"put_{arg.role}(r, a[{i}], result);"
    if arg.role == "acl":
        return f"put_acl(r, a[{i}], a[{i + 1}], result);"
    if arg.role == "rights":
        return f"put_rights(r, a[{i}], a[{i + 1}], result);"
    if arg.role == "times":
        form = 1 if "timeval" in arg.type else 2 if "utimbuf" in arg.type else 0
        return f"put_times(r, a[{i}], result, {form});"
    return ""


# How the time of calls that are no activities passed: for the core, and for the reference.
PASSED = {"pause": ("FEIGN_COMPUTED", "time is part of the pause"),
          "counted": ("FEIGN_COMPUTED", "time is part of the pause"),   # the same, and feign record keeps them
          "waits": ("FEIGN_WAITED", "time is waiting for others"),
          "asks": ("FEIGN_WAITED", "time is waiting for others"),       # the same, for what it asked for and no call shows
          "sleeps": ("FEIGN_SLEPT", "time is part of the pause, which is slept")}
# For `feign discover`: calls on files, and calls that others may keep waiting.
FILE_KINDS = ("open", "close", "read", "write", "seek", "stat", "change", "size", "flush", "dup", "list")
WAITING_EFFECTS = ("wait", "futex", "connect", "accept", "receive", "send", "semaphore", "flock", "aio_wait")
AT_START_EFFECTS = ("close", "connect", "send", "write", "pwrite", "pwrite2", "fork", "vfork", "clone")
AT_ONCE_KINDS = ("open", "seek", "stat", "change", "size", "flush", "dup", "list")   # they keep nobody waiting


def capture(layer):
    """System calls by number: what is kept of each, and how."""
    out, rows, watched, fills = [HEAD], [], [], []
    for op in layer.ops:
        befores, lines = [], []
        if op.effect in ("fcntl", "ioctl", "bind", "connect", "accept"):
            lines = [put(op, a, befores) for a in op.args if a.form == "kPlain"] + [f"put_{op.effect}(r, a, result);"]
        elif op.effect != "aio":
            for a in op.args:
                if a.form == "kStruct":
                    lines.append(f"STRUCT({op.name}_{a.position}, {a.type.replace('*', '').replace('const ', '').strip()}, a[{a.position}]);")
                lines.append(put(op, a, befores))
        kept = [(a.role, a.position) for a in op.args if put(op, a, [])] if op.kind in ("read", "write") else []
        flags = [name for name, holds in (
            ("kNumbers", kept[:2] == [("fd", 0), ("length", 2)] and kept[2:] in ([], [("offset", 3)]) and all(number(op.args[p]).startswith("(uint64_t)a[") for _, p in kept[1:])),
            ("kAndOffset", kept == [("fd", 0), ("length", 2), ("offset", 3)]),
            ("kState", op.kind in ("open", "close", "dup", "process") or op.effect in ("fcntl", "map", "unmap", "remap")),
            ("kData", op.kind in ("read", "write")),
            ("kTexts", any(a.role in ("path", "path2", "text2", "readback2", "iov", "rights") for a in op.args)),
            ("kAlone", op.effect in ("exec", "exit", "exit_group")),
            ("kAtStart", op.effect in AT_START_EFFECTS), ("kAtOnce", op.kind in AT_ONCE_KINDS),
            ("kAio", op.effect == "aio"), ("kSpecial", op.effect in ("fork", "vfork", "clone")),
            ("kGetsFd", op.foreign and op.result == "fd"), ("kGetsFds", op.foreign and op.result != "fd")) if holds]
        body = "".join(f"  {line}\n" for line in lines if line)
        if op.effect == "readlink":
            befores = [f"kOverPath + {next(a.position + 1 for a in op.args if a.role == 'path')}"]
        befores = (befores + [0, 0])[:2]
        places = [next((a.position + 1 for a in op.args if a.role == role and a.form == "kPlain"), 0) for role in ("fd", "dir", "path")]
        file = op.kind in FILE_KINDS and op.effect not in ("aio", "bind")
        waits = op.effect in WAITING_EFFECTS
        watched.append(f'#ifdef SYS_{op.name}\n    [SYS_{op.name}] = {{{int(file)}, {int(waits)}, {places[0]}, {places[1]}, {places[2]}, "{op.name}"}},\n#endif\n')
        out.append(f"#ifdef SYS_{op.name}\nstatic __attribute__((used)) void fill_{op.name}(struct feign_record *to, const long *a, long result, const uint64_t *before) {{\n"
                   # A copy stays in registers, which what is written through it could be told to change.
                   f"  struct feign_record copy = *to, *const r = &copy;\n"
                   f"  (void)a, (void)result, (void)before;\n{body}  to->at = r->at;\n}}\n#endif\n")
        fills.append(op.name)
        rows.append(f"#ifdef SYS_{op.name}\n    [SYS_{op.name}] = {{{len(fills)}, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_{layer.name.upper()}, {op.number}), "
                    f"{' | '.join(flags) or '0'}, {{{befores[0]}, {befores[1]}}}}},\n#endif\n")
    # By distance: pointers in a table would have the loader write to its pages as each program starts.
    out.append('__asm__(".pushsection .rodata\\n.balign 4\\nfill_table:\\n.long 0\\n"\n' +
               "".join(f'#ifdef SYS_{name}\n    ".long fill_{name} - fill_table\\n"\n#else\n    ".long 0\\n"\n#endif\n' for name in fills) +
               '    ".popsection");\n'
               f"enum {{ kFills = {len(fills)} }};\n")
    for i, (name, _, passed) in enumerate(layer.left_out):
        if passed != "pause":
            rows.append(f"#ifdef SYS_{name}\n    [SYS_{name}] = {{{len(fills) + 1}, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_LEFT_OUT, {i}), 0, {{0, 0}}}},\n#endif\n")
        if passed in ("waits", "asks"):
            watched.append(f'#ifdef SYS_{name}\n    [SYS_{name}] = {{0, 1, 0, 0, 0, "{name}"}},\n#endif\n')
    out.append("static const struct described kDescribed[] = {\n" + "".join(rows) + "};\n")
    out.append("static const struct watched_call kWatched[] = {\n" + "".join(watched) + "};\n")
    return "".join(out)


# ---- capture of a library's calls: symbol wrappers (capture/capture.h says how they record) ---------------

def wrapper(layer, op, name, prototype, keys):
    """The definition that a program finds before the library's own."""
    match = re.match(r"(.*?)\b(\w+)\s*\((.*)\)$", prototype)
    returns, params = match[1].strip(), [p.strip() for p in match[3].split(",")]
    params = [] if params == ["void"] else params
    names = [re.sub(r"\[\d*\]", "", p).split()[-1].lstrip("*") for p in params]
    variadic = bool(params) and params[-1] == "..."
    stream = "stream" if "stream" in keys else next((n for p, n in zip(params, names) if "FILE *" in p), None)
    fd = keys.get("fd") or (f"descriptor({stream})" if stream else None)
    head = f"{returns} wrap_{name}({', '.join(params) or 'void'})"
    # Under a name of its own: system headers make macros and aliases of the real one.
    out = [f'EXPORT {head} __asm__("{name}");\n{head} {{\n']
    real, called = name, f"({keys.get('arguments', ', '.join(names))})"
    if variadic:
        real, called = re.match(r"(\w+)(\(.*\))$", keys["call"]).groups()
        types = ", ".join([p.rpartition(n)[0] for p, n in zip(params[:-1], names[:-1])] + ["va_list"])
    else:
        types = ", ".join(p.rpartition(n)[0] for p, n in zip(params, names)) or "void"
    out.append(f"  static {returns} (*real)({types});\n  FIND(real, \"{real}\");\n")
    if "stream" in keys:
        out.append(f"  FILE *const stream = {keys['stream']};\n")
    if stream and op.kind == "close":
        out.append(f"  leave({stream});\n")
    elif stream:
        out.append(f"  HOLD({stream});\n")
    puts = []
    for a in op.args:
        if a.role == "fd":
            a_fd = fd if fd else next(n for p, n in zip(params, names) if p.startswith("int "))
            out.append(f"  const int handle = {a_fd};\n")
            puts.append("feign_put_fd(&record, FEIGN_FIELD_HANDLE, handle);")
        elif a.role == "fd2":
            out.append(f"  const int handle2 = descriptor({stream});\n")
            puts.append("feign_put_fd(&record, FEIGN_FIELD_HANDLE2, handle2);")
        elif a.role == "path":
            puts.append(f"if ({a.name} != NULL) feign_put_path(&record, {a.name}, strlen({a.name}));")
        elif a.role in ("flags", "offset", "mode") or (a.role == "length" and "length" not in keys):
            parameter = keys.get(a.role) or a.name
            if a.role == "length" and parameter not in names:
                parameter = names[-1]
            puts.append(f"feign_put_{a.role}(&record, {'(uint32_t)' if a.role != 'offset' else '(uint64_t)'}({parameter}));")
    if op.kind == "write":
        out.append("  no_error(&held);\n")
    if "length" in keys:
        puts.append(f"feign_put_length(&record, (uint64_t)({keys['length']}));")
    if "before" in keys:
        out.append(f"  const int64_t before = {keys['before']};\n")
    if "first" in keys:
        out.append(f"  {keys['first']};\n")
    out.append("  struct feign_call call;\n  feign_call_begin(&call);\n")
    if variadic:
        out.append(f"  va_list list;\n  va_start(list, {names[-2]});\n")
    out.append(f"  {'' if returns == 'void' else 'const ' + returns + ' r = ' if '*' not in returns else returns + ' const r = '}real{called};\n")
    if variadic:
        out.append("  va_end(list);\n")
    if returns == "FILE *":
        out.append("  seen_now(r);\n")
    out.append("  const int e = errno;\n  (void)e;\n  feign_capture_quiet(1);\n"
               f"  {'' if op.kind == 'write' else 'const '}int64_t result = (int64_t)({keys.get('result', '0')});\n"
               f"{'  if (result >= 0 && has_error(&held)) result = -e;' + chr(10) + '  if (result < 0) held.seen = NULL;' + chr(10) if op.kind == 'write' else ''}"
               "  struct feign_record record;\n"
               "  feign_capture_quiet(0);\n"
               f"  if (feign_call_end(&call, &record, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_{layer.name.upper()}, {op.number}), result, 0)) {{\n")
    out += [f"    {line}\n" for line in puts]
    out.append("    feign_record_end(&record);\n  }\n")
    if stream and op.kind == "write":
        out.append(f"  wrote(&held, {stream}, result);\n")
    out.append("  errno = e;\n")
    out.append("}\n\n" if returns == "void" else f"  return {keys.get('return', 'r')};\n}}\n\n")
    return "".join(out)


def op_numbers(layer):
    """For what is written by hand beside the wrappers."""
    return "enum {\n" + "".join(f"  OP_{op.name} = {op.number},\n" for op in layer.ops) + "};\n\n"


def wrappers(layer):
    out = [HEAD, op_numbers(layer)]
    for op in layer.ops:
        if not op.capture:
            continue
        own = [(op.name, op.prototype, op.capture)]
        own += [(re.match(r".*?\b(\w+)\s*\(", prototype)[1], prototype, {**op.capture, **keys}) for prototype, keys in op.variants]
        known = {name for name, _, _ in own}
        own += [(alias, re.sub(rf"\b{op.name}\b", alias, op.prototype, count=1), op.capture)
                for alias, described in layer.aliases if described == op.name and alias not in known]
        for name, prototype, keys in own:
            out.append(wrapper(layer, op, name, prototype, keys))
    return "".join(out)


# ---- capture of MPI (capture/mpi.c) ---------------------------------------------------------------------


def mpi_wrapper(layer, op, persistent=None):
    """One wrapper, or None where a parameter is not understood; or that of the call which makes a persistent request of it."""
    # Names that the wrapper uses itself.
    prototype = re.sub(r"\b(result|r)(?=[,)\[])", r"\1_given", op.prototype)
    match = re.match(r"(.*?\b\w+)\s*\((.*)\)$", prototype)
    params = [] if match[2] == "void" else [p.strip() for p in match[2].split(",")]
    names = [re.sub(r"\[\d*\]", "", p).split()[-1].lstrip("*") for p in params]
    pointer = {n: "*" in p or "[" in p for n, p in zip(names, params)}
    kind = {n: re.sub(r"\bconst\b", "", p).split()[0] for n, p in zip(names, params)}
    comm = next((n for n in names if kind[n] == "MPI_Comm" and not pointer[n]), None)
    status = next((n for n in names if kind[n] == "MPI_Status" and pointer[n] and "[" not in params[names.index(n)]), None)
    counts = [n for n in names if kind[n] in ("int", "MPI_Count") and not pointer[n] and n.endswith("count")]
    types = [n for n in names if kind[n] == "MPI_Datatype" and not pointer[n]]
    file = next((n for n in names if kind[n] == "MPI_File" and not pointer[n]), None)
    moves = op.kind in ("read", "write")
    before, after, wild, puts, values = [], [], [], [], {}
    # Whose status says what a wildcard got; a probe that may find nothing has a flag.
    receives = op.does in ("receive", "send-receive", "probe")
    got = "result == MPI_SUCCESS && *flag" if "flag" in names else "took(result)" if receives else "result == MPI_SUCCESS"
    neighbour = op.does == "neighbours"
    in_place = "sendbuf" in names and not neighbour
    lists = [n for n in names if n.endswith("counts") and pointer[n]]
    each_type = op.name.lower().endswith("alltoallw")   # a datatype for each member
    # Counts of each member that matter only at the root.
    at_root = "at_root(root, comm)" if "root" in names else ""
    # What is left after reducing goes to one's own group, of two.
    all_ = "own_members(comm)" if "educe_scatter" in op.name else "members(comm)"
    members = {"sendcounts": "out_degree(comm)" if neighbour else all_, "recvcounts": "in_degree(comm)" if neighbour else all_}
    if in_place and "sendcounts" in lists and "recvcounts" in lists:
        # What is sent is what is received; the arguments that MPI does not look at may be anything.
        before.append("if (sendbuf == MPI_IN_PLACE) sendcounts = recvcounts, " + ("sendtypes = recvtypes;" if each_type else "sendtype = recvtype;"))

    def listed(n):
        kinds = n.replace("counts", "types") if each_type else None
        one = types[0] if types and (n == "sendcounts" or len(types) == 1) else types[-1] if types else None
        sum_ = f"bytes_of_all({n}, {members[n]}, {kinds or 'NULL'}, {one or 'MPI_DATATYPE_NULL'})"
        return f"{at_root} ? {sum_} : 0" if at_root else sum_

    # Bytes of the record's texts and lists.
    room = []

    def put_text(text):
        room.append(f"3 + strlen({text})")
        return f"put_text(&r, {text});"

    def put_known(text):
        room.append(f"3 + length_of({text})")
        return f"put_known(&r, {text});"

    def put_list(count, numbers, what="requests"):
        room.append(f"10 * {count}")
        return f"put_{what}(&r, {count}, {numbers});"

    def sized(which):
        if types and "root" in names and len(types) == 2 and at_root:
            # Only the root's part of one side means anything.
            side = "send" if which == 0 else "recv"
            matters = "scatter" in op.name.lower() if side == "send" else "gather" in op.name.lower()
            if side + "count" in counts:
                value = f"bytes_of({side}count, {side}type)"
                if matters:
                    return f"{at_root} ? {value} : 0"
                return f"{side}buf == MPI_IN_PLACE ? 0 : {value}"
            return listed(side + "counts") if side + "counts" in lists else None
        if which < len(lists) and not counts:
            return listed(lists[which])
        if "recvcounts" in lists and which == 1:
            return listed("recvcounts")
        if op.name.endswith("educe_scatter_block"):
            return f"bytes_of(recvcount, datatype) * {'(uint64_t)own_members(comm)' if which == 0 else '1'}"
        if len(counts) > which and types:
            value = f"bytes_of({counts[which]}, {types[min(which, len(types) - 1)]})"
            if in_place and which == 0 and len(counts) + len(lists) > 1:
                return f"sendbuf == MPI_IN_PLACE ? {'bytes_of(recvcount, recvtype)' if 'recvcount' in counts else 'UNKNOWN'} : {value}"
            return value
        return None

    for a in op.args:
        n = names[a.position] if a.position is not None else None
        if a.role in ("-", "buf"):
            continue
        if a.role == "size" or (a.name == "size" and a.role == "length" and a.position is None) or (a.role == "length" and a.name == "size" and n and kind[n] == "void"):
            if sized(0):
                before.append(f"const uint64_t size_ = {sized(0)};")
                puts.append("feign_put_length(&r, size_);")
            elif op.name == "MPI_File_open":
                before.append("const uint64_t size_ = size_before(path_);")
                puts.append("feign_put_length(&r, size_);")
            continue
        if a.role == "length":
            if n and kind[n] == "MPI_Offset":
                puts.append(f"feign_put_length(&r, (uint64_t){'*' if pointer[n] else ''}{n});")
            elif sized(0):
                before.append(f"const uint64_t size_ = {sized(0)};")
                puts.append("feign_put_length(&r, size_);")
        elif a.role == "fd":
            if not pointer[n]:
                before.append(f"const uint32_t handle_ = file_handle({n}); const char* path_ = file_path({n});")
            elif op.name == "MPI_File_close":
                before.append(f"const uint32_t handle_ = file_handle(*{n}); const char* path_ = file_path(*{n});")
            else:
                before.append("uint32_t handle_ = 0;")
                after.append(f"if (result == MPI_SUCCESS) handle_ = new_file(*{n}, path_);")
            puts.append("feign_put_handle(&r, handle_);")
            if op.name != "MPI_File_open":
                puts.append("feign_put_path(&r, path_, strlen(path_));")
                room.append("strlen(path_)")
        elif a.role == "path":
            before.append(f"ROOM(path); const char* path_ = absolute({n}, &path);")
            puts.append("feign_put_path(&r, path_, strlen(path_));")
            room.append("strlen(path_)")
        elif a.role == "flags":
            puts.append(f"feign_put_flags(&r, {'whence_of(' + n + ')' if a.group == 'whence' else '(uint32_t)' + n});")
        elif a.role == "offset":
            puts.append(f"feign_put_offset(&r, (uint64_t){n});")
        elif a.name == "recv_size" and sized(1):
            values[a.index] = ("before", f"const uint64_t recv_size_ = {sized(1)};", "feign_put_value(&r, recv_size_);")
        elif n is None:
            if a.name == "flag":
                values[a.index] = (None, None, "feign_put_value(&r, result == MPI_SUCCESS && *flag ? 1 : 0);")
            else:
                text = a.role in ("text", "comm", "datatype")
                values[a.index] = (None, None, "feign_put_value(&r, 0);" if text else "" if a.role == "list" else "feign_put_value(&r, UNKNOWN);")
        elif a.role == "comm":
            if not pointer[n] or n == "comm":
                values[a.index] = ("before", f"const char* {n}_ = comm_text({'*' if pointer[n] else ''}{n});", put_known(f"{n}_"))
            else:
                before.append(f'const char* {n}_ = "";')
                made = f"later_comm_text(comm, *{n})" if op.name == "MPI_Comm_idup" else f"new_comm_text(*{n})"
                values[a.index] = ("after", f"if (result == MPI_SUCCESS) {n}_ = {made};", put_known(f"{n}_"))
        elif a.role == "datatype":
            if not pointer[n] or n == "type":
                ask = f"type_text({'*' if pointer[n] else ''}{n})"
                if at_root and n in ("sendtype", "recvtype") and ("gather" if n == "recvtype" else "scatter") in op.name.lower():
                    ask = f'{at_root} ? {ask} : ""'
                elif n == "sendtype" and in_place and "sendcounts" not in lists:
                    ask = f'sendbuf == MPI_IN_PLACE ? "" : {ask}'
                values[a.index] = ("before", f"const char* {n}_ = {ask};", put_known(f"{n}_"))
            else:
                before.append(f'const char* {n}_ = "";')
                values[a.index] = ("after", f"if (result == MPI_SUCCESS) {n}_ = new_type_text(*{n});", put_known(f"{n}_"))
        elif a.role == "rank":
            source = receives and n == "source" and status
            value = f"world_rank({comm or 'MPI_COMM_NULL'}, {n})"
            if source:
                wild.append(f"if ({n} == MPI_ANY_SOURCE && {got}) ASK({n}_ = world_rank({comm}, {status}->MPI_SOURCE););")
            if "target_rank" in names or op.name.startswith("MPI_Win"):
                value = f"window_rank(win, {n})"
            elif n == "root":
                value = "root_rank(comm, root)"
            before.append(f"uint64_t {n}_ = UNKNOWN;")
            values[a.index] = ("before", f"{n}_ = {value};", f"feign_put_value(&r, {n}_);")
        elif a.role == "tag":
            source = receives and n in ("tag", "recvtag") and status
            value = f"tag_of({n})" if not source else f"tag_of({n} == MPI_ANY_TAG && {got} ? {status}->MPI_TAG : {n})"
            values[a.index] = (None, None, f"feign_put_value(&r, {value});")
        elif a.role in ("count", "value") and not pointer[n] and kind[n] in ("int", "MPI_Aint", "MPI_Offset", "MPI_Count"):
            values[a.index] = (None, None, f"feign_put_value(&r, (uint64_t)(int64_t){n});")
        elif a.role == "request":
            star = "*" if pointer[n] else ""
            before.append(f"uint64_t {n}_ = UNKNOWN;")
            when = "before" if op.does in ("start", "request") else "after"
            value = f"request_number({star}{n})" if when == "before" else f"new_request({star}{n}, {int(op.does in ('keep-send', 'keep-receive'))})"
            ask = f"{n}_ = {value};"
            if op.does in ("receive", "keep-receive") and "source" in names:
                ask += f" receives_from(*{n}, source, tag, comm);"
            if op.name == "MPI_Cancel":
                ask += f" cancels(*{n});"
            if when == "after":
                ask = f"if (result == MPI_SUCCESS) {{ {ask} }}"
            values[a.index] = (when, ask, f"feign_put_value(&r, {n}_);")
        elif a.role == "list" and kind[n] == "int" and comm and lists:
            # Counts of each member, where they matter (at the root, or everywhere); of each_type bytes.
            sizes = {l: f"{l}, {l}_n_, {l.replace('counts', 'types') if each_type else 'NULL'}" for l in lists}
            for l in lists:
                before.append(f"const int {l}_n_ = {at_root + ' ? ' if at_root else ''}{members[l]}{' : 0' if at_root else ''};")
            if each_type:
                for l in lists:
                    before.append(f"uint64_t {l}_bytes_[MOST_MEMBERS]; bytes_of_each({l}_bytes_, {sizes[l]});")
                values[a.index] = (None, None, " ".join(put_list(f"({l}_n_ < MOST_MEMBERS ? {l}_n_ : 0)", f"{l}_bytes_") for l in lists))
            else:
                values[a.index] = (None, None, " ".join(put_list(f"{l}_n_", l, "counts") for l in lists))
        elif a.role == "text":
            if kind[n] == "MPI_Info" and not pointer[n]:
                values[a.index] = ("before", f"ROOM({n}_t); const char* {n}_ = info_text({n}, &{n}_t);", put_text(f"{n}_"))
            elif kind[n] == "MPI_Op" and not pointer[n]:
                values[a.index] = ("before", f"const char* {n}_ = op_text({n});", put_known(f"{n}_"))
            elif kind[n] == "MPI_Win":
                fresh = pointer[n] and op.name != "MPI_Win_free"
                ask = f"{n}_ = window_text({'*' if pointer[n] else ''}{n}, {int(fresh)}, &{n}_t);"
                if fresh:
                    ask = f"if (result == MPI_SUCCESS) {{ {ask} new_window(*{n}, comm); }}"
                values[a.index] = ("after" if fresh else "before", ask, put_text(f"{n}_"))
                before.append(f'ROOM({n}_t); const char* {n}_ = "";')
            elif kind[n] == "MPI_Group" and not pointer[n]:
                values[a.index] = ("before", f"ROOM({n}_t); const char* {n}_ = group_text({n}, &{n}_t);", put_text(f"{n}_"))
            elif kind[n] == "MPI_Message":
                before.append(f'ROOM({n}_t); const char* {n}_ = "";')
                takes = op.does == "receive"
                ask = f"{n}_ = message_text(*{n}, {int(not takes)}, &{n}_t);"
                values[a.index] = ("before" if takes else "after", ask if takes else f"if ({got}) {ask}", put_text(f"{n}_"))
            elif kind[n] == "char" and pointer[n] and "const" in params[a.position]:
                values[a.index] = (None, None, put_text(f"({n} != NULL ? {n} : \"\")"))
            else:
                values[a.index] = (None, None, "feign_put_value(&r, 0);")
        else:
            values[a.index] = (None, None, "feign_put_value(&r, UNKNOWN);")
    if moves and file:
        shared = "shared" in op.name or "ordered" in op.name or op.name.endswith("_end")
        has = "offset" in names
        before.append("uint64_t place_ = UINT64_MAX;" + ("" if shared else f" place_ = file_place({file}, {int(has)}, {'offset' if has else '0'});"))
        puts.append("feign_put_offset(&r, place_);")
    # The end of a split call is that of as many bytes as its beginning asked for.
    if moves and op.name.endswith("_begin"):
        after.append(f"if (result == MPI_SUCCESS) asks({file}, size_);")
    elif moves and op.name.endswith("_end"):
        before.append(f"const uint64_t size_ = asked_of({file});")
    for index in sorted(values):
        when, ask, put_ = values[index]
        if when == "before":
            before.append(ask)
        elif when == "after":
            after.append(ask)
        puts.append(put_)
    owns = (f"OWN({n})" if kind[n].endswith(("_function", "_fn")) and "conversion" not in kind[n] and "extent" not in kind[n] else n
            for n in names)
    call = f"P{op.name}({', '.join(owns)})"

    def ask():
        """Declarations and questions; nothing of it is recorded."""
        return ("  feign_capture_quiet(1);\n  pthread_mutex_lock(&g_mutex);\n" + "".join(f"  {b}\n" for b in before)
                + "  pthread_mutex_unlock(&g_mutex);\n  feign_capture_quiet(0);\n")

    if persistent:
        # What it says is kept for each start, with its texts, and a place for the request's number.
        params.insert(-1, "MPI_Info info")
        before.remove("uint64_t request_ = UNKNOWN;")
        before = ["ROOM(comm_at);"] + [b.replace("comm_text(comm)", "ready_comm_text(comm, &comm_at)") for b in before]
        kept = [re.sub(r"\bput_known\b", "put_text", p) if p != "feign_put_value(&r, request_);" else "keep_number(&r, kept_);"
                for p in puts if p]
        size = " + ".join(room + [str(10 * len(kept))])
        return (f"int P{persistent}({', '.join(params)});\n"
                f"EXPORT int {persistent}({', '.join(params)}) {{\n  loaded();\n" + ask()
                + "  feign_capture_quiet(1);\n"
                f"  const int result = P{persistent}({', '.join(names[:-1] + ['info', names[-1]])});\n"
                "  feign_capture_quiet(0);\n"
                "  struct feign_record r;\n  struct kept* kept_ = NULL;\n"
                f"  ASK(if (result == MPI_SUCCESS) kept_ = keep_call(*request, {op.number}, &r, {size}));\n"
                "  if (kept_ != NULL) {\n" + "".join(f"    {k}\n" for k in kept)
                + "    kept_end(&r, kept_);\n  }\n  return result;\n}\n\n")
    out = [f"EXPORT {prototype} {{\n"]
    if status:
        out.append(f"  MPI_Status status_;\n  if ({status} == MPI_STATUS_IGNORE) {status} = &status_;\n")
    if op.name == "MPI_File_open":
        before.sort(key=lambda b: "ROOM(path)" not in b)
    out.append("  loaded();\n")
    if before:
        out.append(ask())
    begins = op.name in ("MPI_Init", "MPI_Init_thread")
    waits = f'  feign_call_waits(&call, "{op.name}");\n' if layer.name == "mpi" else ""
    out.append(f"  struct feign_call call;\n  feign_call_begin(&call);\n{waits}")
    if op.name == "MPI_Finalize":
        out.append("  ASK(clocks_end());\n")
    out.append(f"  const int result = {call};\n")
    if begins:
        out.append("  int rank_ = 0;\n  ASK(if (result == MPI_SUCCESS) rank_ = begun());\n  if (result == MPI_SUCCESS) feign_capture_rank(rank_);\n"
                   "  ASK(if (result == MPI_SUCCESS) clocks_begin());\n")
    if after:
        out.append("  ASK(" + " ".join(after) + ");\n")
    out += [f"  {w}\n" for w in wild]
    value = "result == MPI_SUCCESS ? 0 : failed(result)"
    if op.result == "bytes":
        size = "size_" if sized(0) or op.name.endswith("_end") else "UNKNOWN"
        value = f"moved(result, {status or 'NULL'}, {size})"
    if op.result == "position":
        out.append(f"  int64_t place_ = 0;\n  ASK(if (result == MPI_SUCCESS) place_ = sought({file}, offset, whence, {int('shared' in op.name)}));\n")
        value = "result == MPI_SUCCESS ? place_ : failed(result)"
    out.append(f"  const int64_t came_to = {value};\n")
    out.append("  struct feign_record r;\n"
               f"  const uint32_t room_ = (uint32_t)({' + '.join(room or ['1'])});\n"
               f"  if (feign_call_end(&call, &r, FEIGN_CAPTURE_OP(FEIGN_CAPTURE_{layer.name.upper()}, {op.number}), came_to, room_)) {{\n")
    out += [f"    {p}\n" for p in puts if p]
    out.append("    feign_record_end(&r);\n  }\n  return result;\n}\n\n")
    return "".join(out)


def mpi_capture(layer):
    # Not even the loader that looks for all at once (LD_BIND_NOW) misses them in programs without MPI.
    names = [name for op in layer.ops for name in (op.name, op.persistent) if name]
    weak = "".join(f'__asm__(".weak P{name}");\n' for name in names) + "\n"
    return (HEAD + op_numbers(layer) + weak + "".join(mpi_wrapper(layer, op) for op in layer.ops if op.capture != {})
            + "".join(mpi_wrapper(layer, op, op.persistent) for op in layer.ops if op.persistent))


def page(layer):
    out = [f"# The {layer.name} layer\n\n{layer.summary}. Made from `layers/{layer.name}.h`; do not edit.\n\n"]
    others = any(op.does for op in layer.ops)
    out.append(f"| op | id | kind |{' does |' if others else ''} result | prototype |\n|---|---|---|---|---|{'---|' if others else ''}\n")
    for op in layer.ops:
        out.append(f"| {op.name} | {layer.first + op.number} | {op.kind} |{f' {op.does or str()} |' if others else ''} {op.result} | `{op.prototype}` |\n")
    if not layer.left_out:
        return "".join(out)
    out.append("\n## Calls that do not become activities\n\n| why | calls |\n|---|---|\n")
    reasons = {}
    for name, why, passed in layer.left_out:
        reasons.setdefault((why, passed), []).append(name)
    for (why, passed), names in reasons.items():
        out.append(f"| {why} ({PASSED[passed][1]}) | {', '.join(names)} |\n")
    out.append("\nA call that is in neither table is left out as \"no description\", and counted.\n")
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("header")
    for name in ("ops-h", "ops-cc", "replay", "page", "does", "capture", "wrappers", "mpi-capture"):
        parser.add_argument("--" + name)
    options = parser.parse_args()
    try:
        layer = parse(options.header)
    except Bad as error:
        sys.exit(str(error))
    for path, make in ((options.ops_h, ops_h), (options.ops_cc, ops_cc), (options.replay, replay),
                       (options.page, page), (options.does, does), (options.capture, capture), (options.wrappers, wrappers),
                       (options.mpi_capture, mpi_capture)):
        if path:
            try:
                text = make(layer)
            except Bad as error:
                sys.exit(f"{options.header}: {error}")
            # What stays the same is left as it is, so that nothing is built again for it.
            if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)


if __name__ == "__main__":
    main()
