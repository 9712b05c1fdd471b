#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a layer's tables from its annotated header (the language is described in posix.h).

usage: generate.py HEADER --ops-h FILE --ops-cc FILE --replay FILE --page FILE
                   [--does FILE] [--capture FILE] [--wrappers FILE] [--mpi-capture FILE]
"""
import argparse
import os
import re
import sys

from captures import capture, wrappers
from description import HEAD, PASSED, RESULTS, ROLES, camel, constant, parse
from mpi_captures import mpi_capture
from signature import Bad

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
                wide = ", true" if re.search(r"off(64)?_t *$", a.type) else ""
                out.append(f'    {{"{a.name}", Role::{ROLES[a.role][0]}, Form::{a.form}, {a.index}, {names_of(a)}, {quoted(a.member)}{wide}}},\n')
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


def fields(op):
    """Which field of feign_activity holds which argument, as a provider fills them in and a modifier reads them."""
    kept = {}
    for a in op.args:
        if a.slot == "VALUE":
            kept.setdefault(f"values[{a.index}]{' on' if ROLES[a.role][1] == 'LIST' else ''}", []).append(a.name)
        elif a.slot != "NONE":
            kept.setdefault(a.slot.lower(), []).append(a.name)
    return ", ".join(f"{field} = {' or '.join(names)}" for field, names in kept.items()) or "-"


def page(layer):
    out = [f"# The {layer.name} layer\n\n{layer.summary}. Made from `layers/{layer.name}.h`; do not edit.\n\n"
           "What is kept of a call: `FIELD = ARGUMENT`, by the fields of `feign_activity`; `values[N] on`: a value for each member, from the Nth on.\n\n"]
    others = any(op.does for op in layer.ops)
    out.append(f"| op | id | kind |{' does |' if others else ''} result | kept | prototype |\n|---|---|---|---|---|---|{'---|' if others else ''}\n")
    for op in layer.ops:
        out.append(f"| {op.name} | {layer.first + op.number} | {op.kind} |{f' {op.does or str()} |' if others else ''} {op.result} | {fields(op)} | `{op.prototype}` |\n")
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
