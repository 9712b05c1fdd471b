# SPDX-License-Identifier: MIT
"""What capturing MPI is made of (capture/mpi.c): a wrapper a function."""
import re

from captures import op_numbers
from description import HEAD


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
        if which == 0 and "result_count" in names:
            return "bytes_of(result_count, result_datatype)"   # MPI_NO_OP has no origin
        if which == 0 and not counts and not lists and types:
            return f"bytes_of(1, {types[0]})"
        if len(counts) > which and types:
            value = f"bytes_of({counts[which]}, {types[min(which, len(types) - 1)]})"
            if in_place and which == 0 and len(counts) + len(lists) > 1:
                own = "recvcount" if "recvcount" in counts else "own_count(recvcounts, comm)"
                return f"sendbuf == MPI_IN_PLACE ? bytes_of({own}, recvtype) : {value}"
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
                before.append("uint64_t size_ = size_before(path_);")
                after.insert(0, "if (result == MPI_SUCCESS && made_there(filename, &path)) size_ = 0;")
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
    if file and "filetype" in names and not pointer["filetype"]:
        after.append(f"if (result == MPI_SUCCESS) views({file}, filetype);")
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
