// SPDX-License-Identifier: MIT
// Layer mpiio: MPI's own files, below the root.
//
// MPI opens by name, and knows nothing of a root. So the name is resolved here, by the same rules
// as for posix, and MPI is given one below /proc/self/fd, which leads nowhere else, whatever is
// renamed meanwhile. What is to be made is made here, too.
#include "replayers/mpi/files.h"

#include <algorithm>

#include "base/jail.h"
#include "layers/mpiio_ops.h"

namespace feign::mpi {
namespace {

// The first of them makes it; ranks that looked by themselves would see it there or not.
int make_file(const Replayer& r, MPI_Comm comm, const char* path, int how) {
  int me = 0;
  MPI_Comm_rank(comm, &me);
  if (me != 0) return 0;
  const int fd = open_in_root(r.root, path, how | O_WRONLY | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  return fd;
}

// ROMIO opens it by name in ranks that do not write it for others only when they first ask for it.
bool opens_late(MPI_File file) {
  MPI_Info info = MPI_INFO_NULL;
  std::array<char, 8> value{};
  int there = 0;
  if (MPI_File_get_info(file, &info) != MPI_SUCCESS || info == MPI_INFO_NULL) return false;
  MPI_Info_get(info, "romio_no_indep_rw", value.size() - 1, value.data(), &there);
  MPI_Info_free(&info);
  return there != 0 && std::string_view(value.data()) == "true";
}

void open_file(Stream& s) {
  Replayer& r = *s.r;
  const feign_activity& a = *s.a;
  if (a.path == 0) return s.skip("no path was recorded");
  const Group* g = s.group(s.args->comm);
  if (g == nullptr) return s.skip("its communicator is not known");
  MPI_Comm comm = g->comm;
  if (!g->apart) {
    if (r.options.comm != kNone && !g->meeting) return s.refuse(*g);
    comm = MPI_COMM_SELF;  // each on its own: MPI counts a process once
  }
  if (comm == MPI_COMM_NULL) return s.skip("its communicator does not have this rank");
  File f;
  f.group = g;
  const std::string path = r.text(a.path);
  int mode = 0;
  constexpr std::pair<uint32_t, int> kModes[] = {
      {1, MPI_MODE_CREATE},   {2, MPI_MODE_RDONLY},       {4, MPI_MODE_WRONLY},
      {8, MPI_MODE_RDWR},     {32, MPI_MODE_UNIQUE_OPEN}, {64, MPI_MODE_EXCL},
      {128, MPI_MODE_APPEND}, {256, MPI_MODE_SEQUENTIAL}};
  for (const auto& [recorded, here] : kModes)
    if (a.flags & recorded) mode |= here;
  // A name below /proc cannot be removed by MPI.
  if (a.flags & 16) f.remove = path;
  const bool failed = by_circumstance(a.result);
  int fd = failed ? static_cast<int>(a.result) : 0;
  const bool meeting = !g->apart && r.options.comm != kNone;
  // Until all have come nobody looks for it or makes it: they may make or remove one of that name.
  if (meeting) (void)meet(s, *g);
  if (comm != MPI_COMM_SELF) FEIGN_MUST(MPI_Barrier(comm));
  if (mode & MPI_MODE_CREATE) {
    // Each for itself, whoever comes first makes it: only that it was there before is known then.
    const bool exclusive = (mode & MPI_MODE_EXCL) != 0 && (g->apart || a.result == -EEXIST);
    if (!failed) fd = make_file(r, comm, path.c_str(), exclusive ? O_CREAT | O_EXCL : O_CREAT);
    if (comm != MPI_COMM_SELF) FEIGN_MUST(MPI_Bcast(&fd, 1, MPI_INT, 0, comm));
    mode &= ~(MPI_MODE_CREATE | MPI_MODE_EXCL);
  }
  if (meeting) (void)meet(s, *g);
  if (!failed && (fd >= 0 || fd == -EACCES || fd == -EISDIR))
    fd = open_in_root(r.root, path.c_str(), O_PATH | O_CLOEXEC, 0);
  const auto name = std::make_shared<Name>();
  if (fd >= 0) name->reset(fd);
  // MPI allows a communicator one collective call at a time.
  std::unique_lock alone(r.self_mutex, std::defer_lock);
  if (comm == MPI_COMM_SELF) alone.lock();
  if (const int error = agree(comm, *name, fd < 0 ? -fd : 0); error != 0) {
    // ROMIO tells those that would have opened it later no more than that another failed.
    s.outcome->result = fd < 0 ? fd : -error;
    if (failed && s.outcome->result == a.result) s.emulate();
  } else {
    MPI_Info info = build_info(r.text(s.known(s.args->info, 0)));
    const std::string given = r.beside ? name_beside(r, comm, *name, f.link) : name->text();
    s.answer(MPI_File_open(comm, given.c_str(), mode, info, &f.file));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  }
  if (alone) alone.unlock();
  // Who appends begins at the end that all find, before one goes on to make the file longer.
  if (meeting) {
    const int64_t result = s.outcome->result;
    (void)meet(s, *g);
    s.outcome->result = result;
  }
  // One that could not be opened is remembered where others may wait for this rank at its calls.
  const bool open = f.file != MPI_FILE_NULL, wanted = a.handle != 0 && a.result >= 0;
  if (!wanted) {
    if (open) MPI_File_close(&f.file);
  } else if (open || !g->apart) {
    if (r.shares || g->ranks.size() > 1) f.name = name;
    if (!open || !opens_late(f.file)) name->leave_number();
    const std::lock_guard lock(r.files_mutex);
    f.opened = ++r.opens;
    r.files[a.handle] = std::move(f);
  }
}

void delete_file(Stream& s) {
  const feign_activity& a = *s.a;
  if (a.path == 0) return s.skip("no path was recorded");
  const int64_t result = remove_below(s.r->root, s.r->text(a.path));
  // Why it cannot be removed MPI says more roughly than that.
  const bool same = a.result < 0 && result < 0 && (a.result == -ENOENT) == (result == -ENOENT);
  s.outcome->result = same ? a.result : result;
}

// The calls in it are made in its place; it says only that all ranks have come this far.
void only_orders(Stream& s, uint32_t op, bool meets, bool later) {
  Replayer& r = *s.r;
  const feign_activity& a = *s.a;
  const Group* g = nullptr;
  const std::string_view name = r.host->op_info(r.host, op)->name;
  const bool split = name.ends_with("_begin");
  MPI_Request begun = MPI_REQUEST_NULL;
  if (op == FEIGN_MPIIO_FILE_OPEN) {
    g = s.group(s.args->comm);
    const std::lock_guard lock(r.files_mutex);
    r.files[a.handle].group = g;
  } else {
    const std::lock_guard lock(r.files_mutex);
    const auto at = r.files.find(a.handle);
    if (at != r.files.end()) g = at->second.group;
    if (at != r.files.end() && name.ends_with("_end")) std::swap(begun, at->second.begun);
    if (op == FEIGN_MPIIO_FILE_CLOSE && at != r.files.end()) r.files.erase(at);
  }
  if (begun != MPI_REQUEST_NULL) FEIGN_MUST(MPI_Wait(&begun, MPI_STATUS_IGNORE));
  if (r.options.io == kIoOrder && meets && g != nullptr && g->meeting && r.options.comm != kNone) {
    if (later && split) return s.refuse(*g);  // no request tells its end
    if (later)
      meet_later(s, *g);
    else
      (void)meet(s, *g);
  } else if (r.options.io == kIoOrder && meets && g != nullptr && g->comm != MPI_COMM_NULL) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (!later) {
      FEIGN_MUST(MPI_Barrier(g->comm));
    } else if (MPI_Ibarrier(g->comm, &request) == MPI_SUCCESS) {
      // A file has one split call at a time, which has no request that the trace could tell.
      const std::lock_guard lock(r.files_mutex);
      if (split)
        r.files[a.handle].begun = request;
      else
        remember(s, request);
    }
  }
  s.skip("left to the posix calls in it");
}

// A program waits for what it began before it closes a file; its waits may have been filtered out.
void end_requests(Owner& o, uint32_t file) {
  std::vector<MPI_Request> begun;
  {
    const std::lock_guard lock(o.mutex);
    for (auto& [number, pending] : o.requests)
      if (pending.file == file && pending.request != MPI_REQUEST_NULL)
        begun.push_back(std::exchange(pending.request, MPI_REQUEST_NULL));
  }
  for (MPI_Request& request : begun) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// ---- calls on open files ------------------------------------------------------------------------

void close_file(const FileCall& c) {
  Stream& s = c.s;
  Replayer& r = c.r;
  const feign_activity& a = c.a;
  const File& file = c.file;
  MPI_File closing = file.file;
  {
    const std::lock_guard lock(r.files_mutex);
    r.files.erase(a.handle);
  }
  end_requests(*s.owner, a.handle);
  s.answer(MPI_File_close(&closing));
  if (!file.link.empty()) (void)unlink(file.link.c_str());
  if (file.remove.empty()) return;
  (void)remove_below(r.root, file.remove);
  // Whoever goes on may make one of that name, which another must not remove.
  if (c.meeting)
    c.meet_others();
  else if (file.group->apart)
    FEIGN_MUST(MPI_Barrier(file.group->comm));
}

int whence_of(uint32_t recorded) {
  return recorded == 602 ? MPI_SEEK_CUR : recorded == 604 ? MPI_SEEK_END : MPI_SEEK_SET;
}

void seek_file(const FileCall& c) {
  Stream& s = c.s;
  const feign_activity& a = c.a;
  MPI_File const f = c.file.file;
  const bool shared = c.op == FEIGN_MPIIO_FILE_SEEK_SHARED;
  if (by_circumstance(a.result)) return s.emulate();
  const auto to = static_cast<MPI_Offset>(a.offset);
  const int whence = whence_of(a.flags);
  const int code = shared ? MPI_File_seek_shared(f, to, whence) : MPI_File_seek(f, to, whence);
  s.answer(code);
  if (code == MPI_SUCCESS) {
    // A shared pointer may have been moved by others since.
    MPI_Offset at = whence == MPI_SEEK_SET ? to : a.result;
    if (!shared) MPI_File_get_position(f, &at);
    s.outcome->result = at;
  }
}

// How a view has its data in the file. One that the program had made (MPI_Register_datarep) is not
// known here; one that was refused is refused again.
std::string representation(std::string recorded, int64_t result) {
  const bool known =
      recorded == "native" || recorded == "internal" || recorded == "external32" || result < 0;
  return known && !recorded.empty() ? std::move(recorded) : "native";
}

void view_file(const FileCall& c) {
  Stream& s = c.s;
  Replayer& r = c.r;
  const feign_activity& a = c.a;
  const File& file = c.file;
  // The second of its datatypes is the file's. One that is not known is replayed as bytes: a rank
  // that left this call out would keep the others waiting.
  const Type& etype = s.type(s.args->type);
  const Type& filetype = s.type(s.args->type2);
  if (a.result < 0 && (etype.type == MPI_DATATYPE_NULL || filetype.type == MPI_DATATYPE_NULL))
    return s.skip("its datatypes are not known");
  const MPI_Datatype unit = etype.type != MPI_DATATYPE_NULL ? etype.type : MPI_BYTE;
  const MPI_Datatype tile = filetype.type != MPI_DATATYPE_NULL ? filetype.type : unit;
  const std::string format = representation(r.text(s.known(s.args->other, 0)), a.result);
  MPI_Info info = build_info(r.text(s.known(s.args->info, 0)));
  const int code = MPI_File_set_view(file.file, static_cast<MPI_Offset>(a.offset), unit, tile,
                                     format.c_str(), info);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  if (code == MPI_SUCCESS) {
    const std::lock_guard lock(r.files_mutex);
    r.files[a.handle].unit = etype.size > 0 ? static_cast<uint64_t>(etype.size) : 1;
  }
  return s.answer(code);
}

void free_type(MPI_Datatype& type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&type);
}

// Gives a file the view of another one, and its place in that.
void take_place(MPI_File from, MPI_File to) {
  MPI_Offset first = 0, at = 0;
  MPI_Datatype unit = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  char format[MPI_MAX_DATAREP_STRING + 1] = "";
  if (MPI_File_get_view(from, &first, &unit, &type, format) != MPI_SUCCESS) return;
  if (MPI_File_set_view(to, first, unit, type, format, MPI_INFO_NULL) == MPI_SUCCESS &&
      MPI_File_get_position(from, &at) == MPI_SUCCESS)
    MPI_File_seek(to, at, MPI_SEEK_SET);
  free_type(unit);
  free_type(type);
}

// By the one that makes a file longer for all, from where it is in it: there Open MPI writes. Where
// they call it together, Open MPI's others look how long the file is while that one is at it:
// whoever comes late leaves out a collective call that others make, and takes what that sent for
// the answer to a later one.
int preallocate(Replayer& r, const File& file, MPI_Offset size) {
  const std::lock_guard lock(r.self_mutex);
  MPI_File alone = MPI_FILE_NULL;
  int mode = 0;
  MPI_File_get_amode(file.file, &mode);
  mode &= MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
  int code = MPI_File_open(MPI_COMM_SELF, file.name->text().c_str(), mode, MPI_INFO_NULL, &alone);
  if (code != MPI_SUCCESS) return code;
  take_place(file.file, alone);
  code = MPI_File_preallocate(alone, size);
  MPI_File_close(&alone);
  return code;
}

void preallocate_file(const FileCall& c) {
  Stream& s = c.s;
  Replayer& r = c.r;
  const feign_activity& a = c.a;
  const File& file = c.file;
  // Open MPI makes one longer that may not be read, and says that it has failed.
  const bool made = !by_circumstance(a.result);
  const auto size = static_cast<MPI_Offset>(a.length);
  if (made && size > 0 && a.length > r.room.most()) {
    s.outcome->result = -EDQUOT;
    return;
  }
  if (!file.name) return s.answer(MPI_File_preallocate(file.file, size));
  int code = file.group->ranks[0] == s.rank && made ? preallocate(r, file, size) : MPI_SUCCESS;
  if (c.meeting)
    c.meet_others();
  else if (file.group->apart)
    FEIGN_MUST(MPI_Bcast(&code, 1, MPI_INT, 0, file.group->comm));
  return a.result < 0 && code == MPI_SUCCESS ? s.emulate() : s.answer(code);
}

void sync_file(const FileCall& c) {
  if (!c.r.shares) return c.s.answer(MPI_File_sync(c.file.file));
  // Open MPI syncs none while a request is under way in the process, whosever it is.
  if (c.a.result < 0) return c.s.emulate();
  if (c.file.group->apart) FEIGN_MUST(MPI_Barrier(c.file.group->comm));
  c.s.outcome->result = c.file.name->sync();
}

void change_hints(const FileCall& c) {
  MPI_Info info = build_info(c.r.text(c.s.known(c.s.args->info, 0)));
  if (info == MPI_INFO_NULL) return c.s.emulate();
  c.s.answer(MPI_File_set_info(c.file.file, info));
  MPI_Info_free(&info);
}

void make_call(const FileCall& c) {
  Stream& s = c.s;
  MPI_File const f = c.file.file;
  switch (c.op) {
    case FEIGN_MPIIO_FILE_CLOSE:
      return close_file(c);
    case FEIGN_MPIIO_FILE_SEEK:
    case FEIGN_MPIIO_FILE_SEEK_SHARED:
      return seek_file(c);
    case FEIGN_MPIIO_FILE_SET_VIEW:
      return view_file(c);
    case FEIGN_MPIIO_FILE_SET_SIZE: {
      const int code = MPI_File_set_size(f, static_cast<MPI_Offset>(c.a.length));
      // What one writes then, another must not cut off.
      c.meet_others();
      return s.answer(code);
    }
    case FEIGN_MPIIO_FILE_PREALLOCATE:
      return preallocate_file(c);
    case FEIGN_MPIIO_FILE_SYNC:
      return sync_file(c);
    case FEIGN_MPIIO_FILE_GET_SIZE: {
      MPI_Offset size = 0;
      return s.answer(MPI_File_get_size(f, &size));
    }
    case FEIGN_MPIIO_FILE_GET_POSITION: {
      MPI_Offset at = 0;
      return s.answer(MPI_File_get_position(f, &at));
    }
    case FEIGN_MPIIO_FILE_GET_POSITION_SHARED: {
      MPI_Offset at = 0;
      return s.answer(MPI_File_get_position_shared(f, &at));
    }
    case FEIGN_MPIIO_FILE_SET_ATOMICITY:
      return s.answer(MPI_File_set_atomicity(f, s.known(s.args->flag, 0) != 0));
    case FEIGN_MPIIO_FILE_SET_INFO:
      return change_hints(c);
    default:
      return s.emulate();  // what it answers is the library's own
  }
}

}  // namespace

bool by_circumstance(int64_t result) {
  return result == -EIO || result == -ENOSPC || result == -EDQUOT || result == -EROFS ||
         result == -EINVAL || result == -EOPNOTSUPP || result == -ENOMEM;
}

bool of_shared_pointer(std::string_view name) {
  return name.find("_shared") != name.npos || name.find("_ordered") != name.npos;
}

// MPI closes what was left open as it ends, each process in an order of its own. As all who share a
// file have to close it, each would wait in another one's for ever: they close them in one order.
void close_files(Replayer& r) {
  const auto place = [](const File* f) {
    return std::pair(f->group != nullptr ? f->group->number : 0, f->opened);
  };
  std::vector<File*> open;
  for (auto& [handle, f] : r.files) {
    if (f.file == MPI_FILE_NULL) continue;
    for (auto& [rank, o] : r.owners) end_requests(*o, handle);
    open.push_back(&f);
  }
  std::sort(open.begin(), open.end(),
            [&](const File* a, const File* b) { return place(a) < place(b); });
  for (File* f : open) MPI_File_close(&f->file);
}

void leave_out_mpiio(Stream& s, uint32_t op) {
  if (s.a->handle == 0) return;
  const std::lock_guard lock(s.r->files_mutex);
  File& file = s.r->files[s.a->handle];
  file.over = true;
  if (op == FEIGN_MPIIO_FILE_OPEN) file.lost = true;
}

void do_mpiio(Stream& s, uint32_t op) {
  Replayer& r = *s.r;
  const feign_activity& a = *s.a;
  if (refused(a)) return s.emulate();
  const feign_op_info* op_info = r.host->op_info(r.host, op);
  const bool meets = mpiio_does(op) == Does::kMeet, later = s.args->request != kAbsent;
  if (r.options.io != kIoReal) return only_orders(s, op, meets, later);
  if (op == FEIGN_MPIIO_FILE_OPEN) return open_file(s);
  if (op == FEIGN_MPIIO_FILE_DELETE) return delete_file(s);
  File file;
  {
    const std::lock_guard lock(r.files_mutex);
    const auto at = r.files.find(a.handle);
    if (at != r.files.end()) file = at->second;
  }
  if (file.lost) return s.skip("the trace lacks the other half of its open");
  if (file.file == MPI_FILE_NULL && file.group == nullptr) {
    // MPI_FILE_NULL stands for all files, in calls about error handlers only.
    if (a.handle == 0 && std::string_view(op_info->name).ends_with("_errhandler"))
      return s.emulate();
    if (a.handle == 0 || (a.marks & FEIGN_INHERITED))
      return s.skip("the trace does not tell its file");
    s.outcome->result = -EBADF;
    return;
  }
  const bool meeting = meets && !later && file.group->meeting && r.options.comm != kNone;
  if (!file.group->apart && r.options.comm != kNone &&
      (!file.group->meeting || of_shared_pointer(op_info->name)))
    return s.refuse(*file.group);
  if (meeting && !meet(s, *file.group)) return;
  const FileCall call{s, op, file, meets, later, meeting};
  const bool moves = op_info->kind == FEIGN_KIND_READ || op_info->kind == FEIGN_KIND_WRITE;
  if (file.file == MPI_FILE_NULL) {
    if (moves || op == FEIGN_MPIIO_FILE_SET_SIZE) call.meet_others();
    if (op == FEIGN_MPIIO_FILE_CLOSE) {
      const std::lock_guard lock(r.files_mutex);
      r.files.erase(a.handle);
    }
    s.outcome->result = -EBADF;
    return;
  }
  if (moves)
    read_or_write(call);
  else
    make_call(call);
}

}  // namespace feign::mpi
