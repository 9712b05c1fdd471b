#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`feign generate`: makes the capture library, the replayer plug-in and the reference page of a third
party's library from its annotated header (docs/layers.md), and what builds them.

usage: library.py HEADER -o DIR [--name NAME] [--library LIBRARY] [--include DIR]… --feign-include DIR…
"""
import argparse
import errno
import os
import re
import shutil
import sys
import tempfile

from description import LIBRARY_ROLES, Parser, parse
from signature import Bad

RESERVED = ("posix", "stdio", "mpi", "mpiio")
MARK = "Made by feign generate"
# As in feign.h.
TYPES = {"NUMBER": 0, "PATH": 1, "FD": 2, "FLAGS": 3, "MODE": 4, "BUFFER": 5, "STRING": 6, "LIST": 7}
SLOTS = {"NONE": 0, "HANDLE": 1, "HANDLE2": 2, "PATH": 3, "PATH2": 4, "OFFSET": 5, "LENGTH": 6, "FLAGS": 7, "MODE": 8, "VALUE": 9}


class Made:
    """An op as both sides need it: its kept arguments, and C expressions for what it came to."""

    def __init__(self, op, handle_types):
        self.op, self.sig = op, op.signature
        self.args = []   # (name, type, slot, index, group)
        for a in op.args:
            _, kind, slot = self.kind_of(a)
            if slot != "NONE":
                self.args.append((a.name, kind, slot, a.index if slot == "VALUE" else 0, a.group))
        if op.result == "handle":
            self.args.append(("result", "FD", self.made_slot(), 0, ""))
        elif "length" in op.capture and not any(a[2] == "LENGTH" for a in self.args):
            self.args.append(("length", "NUMBER", "LENGTH", 0, ""))
        self.length = next((self.read(a) for a in op.args if a.role == "length"), None) or op.capture.get("length")
        self.types = {}   # of its handles: which table
        for a in op.args:
            if a.role in ("handle", "handle2", "handle-at", "new"):
                param = self.sig.params[a.position]
                self.types[a.role] = table(handle_types, param.type if a.role in ("handle", "handle2") else param.pointee())
        if op.result == "handle":
            self.types["returned"] = table(handle_types, self.sig.returns)
        self.used = next((a for a in op.args if a.role in ("handle", "handle-at")), None)
        self.used2 = next((a for a in op.args if a.role == "handle2"), None)
        self.new = next((a for a in op.args if a.role == "new"), None)

    def made_slot(self):
        return "HANDLE2" if any(a.role in ("handle", "handle-at") for a in self.op.args) else "HANDLE"

    def kind_of(self, a):
        if a.role == "new":
            return "kFd2", "FD", self.made_slot()
        role, kind, slot = LIBRARY_ROLES[a.role]
        if a.group and kind == "NUMBER":
            kind = "FLAGS"
        return role, kind, slot

    def read(self, a):
        """What an argument is in C."""
        name = self.sig.params[a.position].name
        if a.member is not None:
            return f"({name} != NULL ? {name}->{a.member} : 0)"
        return name

    def result(self):
        """The result that the description promises, of r, what was returned, and e, the error number then."""
        op, sig = self.op, self.sig
        if "result" in op.capture:
            return op.capture["result"]
        at = next((sig.params[a.position].name for a in op.args if a.role == "result"), None)
        if at:
            value = f"({at} != NULL ? (int64_t)*{at} : 0)"
        elif sig.void() or op.result == "handle" or sig.returns_pointer() or op.fails == "zero" and op.result == "zero":
            value = "0"
        elif op.result == "bytes" and op.fails in ("code", "nonzero", "zero"):
            value = f"(int64_t)({self.length or 0})"
        else:
            value = "(int64_t)r"
        if sig.void() or op.fails == "never":
            return value
        if sig.returns_pointer():
            return f"r != NULL ? {value} : FEIGN_FAILED(e)"
        failed, error = {"errno": ("FEIGN_LAYER_FAILED(r)", "e"), "negative": ("(int64_t)r < 0", "-(int64_t)r"), "code": ("r != 0", "r"),
                         "nonzero": ("r != 0", "e"), "zero": ("r == 0", "e")}[op.fails]
        return f"{failed} ? FEIGN_FAILED({error}) : {value}"

    def described(self):
        """For the plug-in to see that a trace means the same."""
        return " ".join(f"{TYPES[kind]}:{SLOTS[slot]}:{index}" for _, kind, slot, index, _ in self.args)


def table(handle_types, text):
    """(number, type) of a handle's C type: numbers of different types may be the same."""
    text = re.sub(r"\s+", " ", re.sub(r"\b(const|restrict|volatile)\b", "", text)).replace(" *", "*").strip()
    text = re.sub(r"^(?:[A-Z][A-Z0-9_]* )+(?=\w)", "", text)   # what libraries mark their exports with
    if text not in handle_types:
        handle_types.append(text)
    return handle_types.index(text), text


def c_text(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def head(what, header, build):
    return f"/* {MARK} from {os.path.basename(header)}: do not edit.\n * {what}\n *   {build}\n */\n"


# ---- capture ----------------------------------------------------------------------------------------------

def wrapper(layer, made, name):
    op, sig = made.op, made.sig
    params = ", ".join(p.declared() if p.text != "..." else "..." for p in sig.params) or "void"
    names = ", ".join(p.name for p in sig.params if p.text != "...")
    define = f"{sig.returns} feign_wrap_{name}({params})"
    out = [f'FEIGN_EXPORT {define} __asm__("{name}");\n{define} {{\n']
    real, called = name, f"f_real({names})"
    if sig.variadic:
        real, inside = re.match(r"(\w+)\s*\((.*)\)$", op.capture["call"], re.S).groups()
        called = f"f_real({inside})"
    out.append(f"  static __typeof__({real if sig.variadic else op.name})* f_real;\n  FEIGN_LAYER_NEXT(f_real, \"{real}\");\n")
    if sig.variadic:
        last = sig.params[-2].name if len(sig.params) > 1 else ""
        out.append(f"  va_list list;\n  va_start(list, {last});\n")
    give = "" if sig.void() else "__auto_type r = "
    if sig.variadic:
        out.append("  const uint32_t f_layer = feign_layer_on();\n  struct feign_call f_call;\n")
    else:
        out.append(f"  const uint32_t f_layer = feign_layer_on();\n  if (f_layer == 0) {f'{{ {called}; return; }}' if sig.void() else f'return {called};'}\n"
                   "  struct feign_call f_call;\n")
    # Before the call: what may be gone after it.
    for which, a in (("used", made.used), ("used2", made.used2)):
        if a is None:
            continue
        kind = made.types[a.role]
        value = sig.params[a.position].name
        if a.role == "handle-at":
            value = f"({value} != NULL ? *{value} : 0)"
        takes = op.kind == "close" and which == "used"
        out.append(f"  const uintptr_t f_key_{which} = FEIGN_LAYER_KEY({value});\n"
                   f"  const uint32_t f_{which} = feign_layer_{'take' if takes else 'used'}(&handles_{kind[0]}, f_key_{which});\n")
    for role in ("path", "path2"):
        for a in op.args:
            if a.role == role:
                out.append(f"  char f_room_{role}[FEIGN_LAYER_PATH];\n  const char* const f_{role} = feign_layer_absolute({made.read(a)}, f_room_{role});\n")
    if "before" in op.capture:
        out.append(f"  feign_layer_quiet(1);\n  const int64_t before = (int64_t)({op.capture['before']});\n  feign_layer_quiet(0);\n")
    begin, end = "feign_call_begin(&f_call);", f"feign_call_end(&f_call, &f_record, FEIGN_CAPTURE_OP(f_layer, {op.number}), f_result, 0)"
    if sig.variadic:
        begin, end = "if (f_layer != 0) " + begin, f"f_layer != 0 && {end}"
    out.append(f"  {begin}\n  {give}{called};\n  const int f_errno = errno;\n")
    if sig.variadic:
        out.append("  va_end(list);\n")
    out.append("  feign_layer_quiet(1);\n  const int e = f_errno;\n  (void)e;\n"
               f"  const int64_t f_result = (int64_t)({made.result()});\n")
    if made.length:
        out.append(f"  const uint64_t f_length = (uint64_t)({made.length});\n")
    out.append("  feign_layer_quiet(0);\n")
    number = None
    if op.result == "handle":
        number, value = made.types["returned"], "r"
    elif made.new:
        at = sig.params[made.new.position].name
        number, value = made.types["new"], f"({at} != NULL ? *{at} : 0)"
    if number:
        out.append(f"  const uint32_t f_fresh = f_result >= 0 ? feign_layer_made(&handles_{number[0]}, FEIGN_LAYER_KEY({value})) : 0;\n")
    if op.kind == "close":
        out.append(f"  if (f_result < 0) feign_layer_keep(&handles_{made.types[made.used.role][0]}, f_key_used, f_used);\n")
    out.append("  struct feign_record f_record;\n"
               f"  if ({end}) {{\n")
    out += [f"    {line}\n" for line in puts(made, number is not None)]
    out.append("    feign_record_end(&f_record);\n  }\n  errno = f_errno;\n")
    out.append("}\n\n" if sig.void() else "  return r;\n}\n\n")
    return "".join(out)


def puts(made, makes):
    op, out, values = made.op, [], {}
    if made.used:
        out.append("feign_put_handle(&f_record, f_used);")
    if made.used2:
        out.append("feign_put_handle2(&f_record, f_used2);")
    if makes:
        out.append(f"feign_put_handle{'2' if made.used else ''}(&f_record, f_fresh);")
    for a in op.args:
        value = made.read(a)
        if a.role in ("path", "path2"):
            out.append(f"feign_layer_put_{a.role}(&f_record, f_{a.role});")
        elif a.role in ("flags", "mode"):
            out.append(f"feign_put_{a.role}(&f_record, (uint32_t)({value}));")
        elif a.role == "offset":
            out.append(f"feign_put_offset(&f_record, (uint64_t)({value}));")
        elif a.role in ("value", "count"):
            values[a.index] = f"feign_put_value(&f_record, (uint64_t)({value}));"
        elif a.role == "text":
            values[a.index] = f"feign_layer_put_text(&f_record, {value});"
    if made.length:
        out.append("feign_put_length(&f_record, f_length);")
    for index in range(max(values, default=-1) + 1):
        out.append(values.get(index, "feign_put_value(&f_record, 0);"))
    return out


def tables(layer, ops):
    out = []
    for group, names in layer.groups.items():
        rows = ", ".join(f"{{{c_text(n.partition('=')[0])}, (uint64_t)({n.partition('=')[2] or n})}}" for n in names)
        out.append(f"static const feign_name names_{group}[] = {{{rows}}};\n")
    for m in ops:
        if m.args:
            rows = ",\n    ".join(f"{{{c_text(name)}, FEIGN_ARG_{kind}, FEIGN_SLOT_{slot}, {index}, "
                                  + (f"sizeof names_{group} / sizeof names_{group}[0], names_{group}}}" if group else "0, NULL}")
                                  for name, kind, slot, index, group in m.args)
            out.append(f"static const feign_arg_info args_{m.op.name}[] = {{\n    {rows}}};\n")
        out.append(f"static const feign_op_info op_{m.op.name} = {{sizeof(feign_op_info), 0, \"{m.op.name}\", LAYER, FEIGN_KIND_{m.op.kind.upper()}, "
                   f"FEIGN_RESULT_{Parser.LIBRARY_RESULTS[m.op.result]}, {len(m.args)}, sizeof(feign_arg_info), {f'args_{m.op.name}' if m.args else 'NULL'}}};\n")
    by_number = {m.op.number: m for m in ops}
    rows = ", ".join(f"&op_{by_number[i].op.name}" if i in by_number else "NULL" for i in range(1, ops[-1].op.number + 1))
    out.append(f"static const feign_op_info* const ops[] = {{{rows}}};\n"
               "const feign_layer feign_capture_layer_v1 = {sizeof(feign_layer), sizeof ops / sizeof ops[0], LAYER, ops};\n\n")
    return "".join(out)


def capture(layer, ops, handle_types, o):
    out = [head("The capture library: stands before the library, records its calls and passes them on.", o.header, o.build_capture),
           f'#define _GNU_SOURCE\n#include "feign_layer_capture.h"\n#include "{os.path.basename(o.header)}"\n\n#define LAYER "{layer.name}"\n\n',
           tables(layer, ops)]
    out += [f"static struct feign_layer_handles handles_{i}; /* {t} */\n" for i, t in enumerate(handle_types)]
    out.append("\n")
    for m in ops:
        for name in [m.op.name] + [alias for alias, described in layer.aliases if described == m.op.name]:
            out.append(wrapper(layer, m, name))
    return "".join(out)


# ---- replay -----------------------------------------------------------------------------------------------

def number_of(a):
    return {"length": "f_a->length", "offset": "f_a->offset", "flags": "f_a->flags", "mode": "f_a->mode"}.get(a.role, f"feign_layer_value(f_a, {a.index})")


def local(made, a, param):
    """How a parameter comes about from an activity: lines, those that come last."""
    t, n = param.type, param.name
    if a.form == "kStruct":
        members = [b for b in made.op.args if b.position == a.position]
        lines = [f"{param.pointee()} p_{n};", f"memset(&p_{n}, 0, sizeof p_{n});"]
        for b in members:
            if b.role in ("path", "path2"):
                lines.append(f"p_{n}.{b.member} = feign_layer_path(f_c, {int(b.role == 'path2')}, f_a->{b.role});")
            elif b.role == "text":
                lines.append(f"p_{n}.{b.member} = feign_layer_text(f_c, {number_of(b)});")
            else:
                lines.append(f"p_{n}.{b.member} = (__typeof__(p_{n}.{b.member}))({number_of(b)});")
        const_free = [re.sub(r"^const ", "", lines[0])] + lines[1:]
        return const_free + [f"{t} {n} = &p_{n};"]
    if a.role in ("handle", "handle2"):
        return [f"{t} {n} = ({t})feign_layer_handle(f_c, f_a->{a.role}, {made.types[a.role][0]});"]
    if a.role == "handle-at":
        p = param.pointee()
        return [f"{p} p_{n} = ({p})feign_layer_handle(f_c, f_a->handle, {made.types[a.role][0]});", f"{t} {n} = &p_{n};"]
    if a.role in ("new", "result", "out"):
        if param.array:
            return [f"{param.declared()};", f"memset({n}, 0, sizeof {n});"]
        p = param.pointee()
        return [f"{p} p_{n};", f"memset(&p_{n}, 0, sizeof p_{n});", f"{t} {n} = &p_{n};"]
    if a.role in ("path", "path2"):
        return [f"{t} {n} = ({t})feign_layer_path(f_c, {int(a.role == 'path2')}, f_a->{a.role});"]
    if a.role == "text":
        return [f"{t} {n} = ({t})feign_layer_text(f_c, {number_of(a)});"]
    if a.role == "buf":
        room = param.writable() or param.hides_pointer() and made.op.kind != "write"
        return [f"{t} {n} = ({t})feign_layer_{'room' if room else 'content'}(f_c, f_buffer);"]
    if a.role == "-":
        return [] if param.function or param.text == "..." else [f"{t} {n};", f"memset(&{n}, 0, sizeof {n});"]
    return [f"{t} {n} = ({t})({number_of(a)});"]


def make(made, give_ups):
    op, sig = made.op, made.sig
    out = [f"static int64_t make_{op.name}(struct feign_layer_stream* f_c, const feign_activity* f_a) {{\n"]
    lines, last, seen = [], [], set()
    for a in op.args:
        if a.position in seen:
            continue
        seen.add(a.position)
        (last if a.role == "buf" else lines).extend(local(made, a, sig.params[a.position]))
    if last:
        # As much as was asked for; where that is not told by what went in, as much as it came to.
        known = made.length if made.length and not re.search(r"\b(r|e|before)\b", made.length) else "f_a->length"
        lines.append(f"const uint64_t f_buffer = (uint64_t)({known});")
    out += [f"  {line}\n" for line in lines + last]
    out.append("  if (f_c->why != NULL || f_c->error != 0) return f_c->error;\n")
    if "before" in op.capture:
        out.append(f"  const int64_t before = (int64_t)({op.capture['before']});\n")
    given = [f"({p.cast()}){{0}}" if p.function else p.name for p in sig.params if p.text != "..."]
    call = op.replay or f"{op.name}({', '.join(given)})"
    if op.replay:
        out += [f"  (void){p.name};\n" for p in sig.params if not p.function and p.text != "..."]
    out.append(f"  errno = 0;\n  {'' if sig.void() else '__auto_type r = '}{call};\n  const int e = errno;\n  (void)e;\n")
    out.append(f"  const int64_t f_result = (int64_t)({made.result()});\n")
    if op.result == "handle" or made.new:
        kind = made.types["returned"] if op.result == "handle" else made.types["new"]
        value = "r" if op.result == "handle" else "p_" + sig.params[made.new.position].name
        give = f"give_up_{kind[0]}" if kind[0] in give_ups else "NULL"
        out.append(f"  feign_layer_made(f_c, f_a->handle{'2' if made.used else ''}, {kind[0]}, f_result >= 0, (uintptr_t){value}, {give});\n")
    if op.kind == "close":
        out.append("  if (f_result >= 0) feign_layer_gone(f_c, f_a->handle);\n")
    out.append("  return f_result;\n}\n\n")
    return "".join(out)


def replayer(layer, ops, handle_types, o):
    out = [head("The replayer plug-in: makes the library's calls below the root.", o.header, o.build_replayer),
           f'#define _GNU_SOURCE\n#include "feign_layer_replayer.h"\n#include "{os.path.basename(o.header)}"\n\n']
    give_ups = {}
    for m in ops:
        plain = all(a.role in ("handle", "handle-at") for a in m.op.args) and not m.op.replay
        if m.op.kind == "close" and plain and len(m.sig.params) == 1:
            give_ups.setdefault(m.types[m.used.role][0], m)
    for number, m in sorted(give_ups.items()):
        t = handle_types[number]
        at = "&h" if m.used.role == "handle-at" else "h"
        out.append(f"/* What the trace leaves open is closed at the end. */\nstatic void give_up_{number}(uintptr_t handle) {{\n"
                   f"  {t} h = ({t})handle;\n  (void){m.op.name}({at});\n}}\n\n")
    out += [make(m, give_ups) for m in ops if m.op.replay != "none"]
    out.append("static const struct feign_layer_op kOps[] = {\n")
    for m in ops:
        out.append(f'    {{"{m.op.name}", "{m.described()}", {"NULL" if m.op.replay == "none" else f"make_{m.op.name}"}}},\n')
    out.append(f'}};\n\nFEIGN_LAYER_REPLAYER("{layer.name}", "Makes the calls of layer {layer.name} below the root.", kOps)\n')
    return "".join(out)


# ---- page, build ------------------------------------------------------------------------------------------

FAILS = {"errno": "below 0; errno says why", "negative": "below 0: less the error number", "code": "other than 0: the error number",
         "nonzero": "other than 0; errno says why", "zero": "0; errno says why", "never": "never"}


def page(layer, ops, o):
    out = [f"<!-- {MARK} from {os.path.basename(o.header)}: do not edit. -->\n# The {layer.name} layer\n\n{layer.summary[:1].upper() + layer.summary[1:]}.\n\n",
           "| op | id | kind | result | kept | prototype |\n|---|---|---|---|---|---|\n"]
    for m in ops:
        kept = ", ".join(name + (f" ({group})" if group else "") for name, _, _, _, group in m.args if name != "result") or "-"
        out.append(f"| {m.op.name} | {m.op.number} | {m.op.kind} | {m.op.result} | {kept} | `{re.sub(chr(92) + 's+', ' ', m.op.prototype)}` |\n".replace("||", "| |"))
    if layer.aliases:
        out.append("\n" + "".join(f"`{alias}` is `{op}`.\n" for alias, op in layer.aliases))
    out.append("\n## Failure\n\n| op | fails when what is returned is |\n|---|---|\n")
    for m in ops:
        said = f"`{m.op.capture['result']}`: what the result is" if "result" in m.op.capture else "never" if m.sig.void() else "NULL; errno says why" if m.sig.returns_pointer() and m.op.fails != "never" else FAILS[m.op.fails]
        out.append(f"| {m.op.name} | {said.replace('|', chr(92) + '|')} |\n")
    skipped = [m.op.name for m in ops if m.op.replay == "none"]
    if skipped:
        out.append(f"\nNot replayed: {', '.join(skipped)}.\n")
    for group, names in layer.groups.items():
        out.append(f"\n## {group}\n\n" + ", ".join(f"`{n}`" for n in names) + "\n")
    out.append(f"\n## Use\n\n```\n{o.next}```\n")
    return "".join(out)


def meson(layer, o):
    def quoted(words):
        return ", ".join("'" + w.replace("\\", "\\\\").replace("'", "\\'") + "'" for w in words)

    rpath = f"build_rpath: {quoted([o.rpath])}, " if o.rpath else ""
    return (f"# {MARK} from {os.path.basename(o.header)}: do not edit.\n"
            f"project('feign-{layer.name}', 'c', default_options: ['c_std=gnu11', 'warning_level=1', 'optimization=2', 'b_lundef=false'])\n\n"
            f"includes = [{quoted(o.includes)}]\n"
            f"# Preloaded by feign record --with.\nshared_library('{layer.name}-capture', '{o.id}_capture.c', c_args: includes + ['-fexceptions'],\n"
            "  dependencies: meson.get_compiler('c').find_library('dl', required: false), gnu_symbol_visibility: 'hidden', build_by_default: true)\n"
            f"# For feign replay --replayer.\nshared_module('{layer.name}', '{o.id}_replayer.c', name_prefix: '', c_args: includes, dependencies: dependency('threads'),\n"
            f"  link_args: [{quoted(o.link)}], {rpath}gnu_symbol_visibility: 'hidden')\n")


def write_all(files, directory, header):
    """All of them or none; nothing that is not ours is written over."""
    for name in files:
        path = os.path.join(directory, name)
        if os.path.isdir(path):
            raise Bad(f"{path}: is a directory; want another -o")
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                if MARK not in f.read(200):
                    raise Bad(f"{path}: is there, and not feign generate's; want another -o")
    made = not os.path.isdir(directory)
    os.makedirs(directory, exist_ok=True)
    try:
        part = tempfile.mkdtemp(prefix=".feign-generate.", dir=directory)
    except OSError:
        if made:
            os.rmdir(directory)
        raise
    try:
        for name, text in files.items():
            with open(os.path.join(part, name), "w", encoding="utf-8") as f:
                f.write(text)
        for name in files:
            os.replace(os.path.join(part, name), os.path.join(directory, name))
    except OSError as error:
        error.filename = error.filename or directory
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def say(text):
    try:
        print(text, end="", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)   # what is left is not tried again at the end
        if error.errno != errno.EPIPE:   # a reader that has seen enough, as head does
            raise OSError(error.errno, error.strerror, "write standard output") from None


def shell(word):
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def generate(o):
    layer = parse(o.header, library=True)
    if not layer.name:
        raise Bad(f'{o.header}: no annotations: want //@ layer NAME "what it is", and an //@ op for each call (docs/layers.md)')
    layer.name = o.name or layer.name
    where = f"--name {o.name}" if o.name else f"{o.header}:{layer.line}: layer {layer.name}"
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", layer.name):
        raise Bad(f"{where}: want a name of at most 31 small letters, digits and -, with a letter first")
    if layer.name in RESERVED:
        raise Bad(f"{where}: that is one of feign's own layers ({', '.join(RESERVED)}); want another name")
    if not layer.ops:
        raise Bad(f"{o.header}: layer {layer.name} has no ops: want an //@ op for each call")
    symbols = [op.name for op in layer.ops] + [alias for alias, _ in layer.aliases]
    if len(set(symbols)) != len(symbols):
        raise Bad(f"{o.header}: {next(s for s in symbols if symbols.count(s) > 1)}: is described twice")
    directory = o.output or f"feign-{layer.name}"
    o.id = layer.name.replace("-", "_")
    o.includes = ["-I" + os.path.abspath(d) for d in [os.path.dirname(o.header) or ".", *o.include, *o.feign_include]]
    library = o.library or f"-l{layer.name}"
    if library.startswith("-"):
        o.link, o.rpath = library.split(), None
    else:
        if not os.path.exists(library):
            raise Bad(f"--library {library}: is not there")
        folder, path = os.path.dirname(os.path.abspath(library)), os.path.abspath(library)
        o.link, o.rpath = [path], folder
    link = o.link + ["-Wl,-rpath," + o.rpath] if o.rpath else o.link
    base = "cc -std=gnu11 -O2 -shared -fPIC -fvisibility=hidden "
    flags = " ".join(map(shell, o.includes))
    o.build_capture = f"{base}-fexceptions {flags} -o lib{layer.name}-capture.so {o.id}_capture.c -ldl"
    o.build_replayer = f"{base}{flags} -o {layer.name}.so {o.id}_replayer.c {' '.join(map(shell, link))} -lpthread"
    d = shell(directory)
    o.next = (f"meson setup {d}/build {d} && ninja -C {d}/build\n"
              f"feign record --with {d}/build/lib{layer.name}-capture.so -o app.feign -- COMMAND\n"
              "feign info app.feign\n"
              f"feign replay app.feign --root DIR --replayer posix --replayer {d}/build/{layer.name}.so\n")
    handle_types = []
    ops = [Made(op, handle_types) for op in layer.ops]
    files = {f"{o.id}_capture.c": capture(layer, ops, handle_types, o), f"{o.id}_replayer.c": replayer(layer, ops, handle_types, o),
             f"{layer.name}.md": page(layer, ops, o), "meson.build": meson(layer, o)}
    write_all(files, directory, o.header)
    if not o.quiet:
        say(f"{directory}: " + ", ".join(files) + f"\n{len(ops)} calls of layer {layer.name}. Next:\n\n" +
            "".join("  " + line + "\n" for line in o.next.splitlines()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("header")
    parser.add_argument("-o", "--output")
    parser.add_argument("--name")
    parser.add_argument("--library")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--feign-include", action="append", default=[])
    parser.add_argument("--quiet", action="store_true")
    try:
        generate(parser.parse_args())
    except Bad as error:
        print(f"feign: generate: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"feign: generate: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
