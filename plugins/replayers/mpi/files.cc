// SPDX-License-Identifier: MIT
// Layer mpiio: MPI's own files, below the root.
//
// MPI opens by name, and knows nothing of a root. So the name is resolved here, by the same rules
// as for posix, and MPI is given one below /proc/self/fd, which leads nowhere else, whatever is
// renamed meanwhile. What is to be made is made here, too.
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>

#include "base/jail.h"
#include "layers/mpiio_ops.h"
#include "replayers/mpi/state.h"

namespace feign::mpi {

// A descriptor, while this lives, and a name by which MPI can open what it stands for.
class Name {
 public:
  Name() = default;
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;
  ~Name() { reset(-1); }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  // Its number, from now on no lower than that, as far as the process may have such.
  int number(int least) {
    if (fd_ >= 0 && fd_ < least)
      if (const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, least); fd >= 0) reset(fd);
    return fd_;
  }
  // Leaves that number to the next.
  void leave_number() {
    if (const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 0); fd >= 0) reset(fd);
  }
  std::string text() const { return "/proc/self/fd/" + std::to_string(fd_); }
  int64_t sync() const {
    const int fd = open(text().c_str(), O_RDONLY | O_CLOEXEC);
    const int64_t result = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
    if (fd >= 0) close(fd);
    return result;
  }

 private:
  int fd_ = -1;
};

namespace {

// MPI makes names of its own from a file's last one, which has to be the same in all processes: a
// number that is free in each, looked for from where it mostly is. All of them find the file, or
// none, and the first error is everybody's: 0, or an errno.
int agree(MPI_Comm comm, Name& name, int error) {
  int least = 700;
  for (int round = 0; round < 16; ++round) {
    const int number = error == 0 ? name.number(least) : 0;
    const int mine[3] = {error, number, -number};
    int all[3] = {0, 0, 0};
    MPI_Allreduce(mine, all, 3, MPI_INT, MPI_MAX, comm);
    if (all[0] != 0) return all[0];
    if (all[1] == -all[2]) return 0;
    least = all[1];
  }
  return 0;
}

int64_t remove_below(int root, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash);
  const int dir = open_in_root(root, directory.empty() ? "/" : directory.c_str(),
                               O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (dir < 0) return dir;
  const char* last = path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  const int64_t result = unlinkat(dir, last, 0) == 0 ? 0 : -errno;
  close(dir);
  return result;
}

// Failed for a reason that lies in the machine of then or in its arguments, or that MPI does not
// name: made again, it could succeed, and change what did not change.
bool by_circumstance(int64_t result) {
  return result == -EIO || result == -ENOSPC || result == -EDQUOT || result == -EROFS ||
         result == -EINVAL || result == -EOPNOTSUPP || result == -ENOMEM;
}

// The first of them makes it; ranks that looked by themselves would see it there or not.
int make_file(const Replayer& r, MPI_Comm comm, const char* path, int how) {
  int me = 0;
  MPI_Comm_rank(comm, &me);
  if (me != 0) return 0;
  const int fd = open_in_root(r.root, path, how | O_WRONLY | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  return fd;
}

// A name of this file's alone in that directory, and on this host: Open MPI calls a semaphore after
// its last part, which another replay, or one that was ended, may have. `link` is what has to be
// removed.
std::string name_beside(Replayer& r, MPI_Comm comm, const Name& name, std::string& link) {
  int which[] = {static_cast<int>(r.rank), r.opened++, static_cast<int>(getpid())};
  MPI_Bcast(which, 3, MPI_INT, 0, comm);
  std::string path = r.beside->text() + "/" + std::to_string(which[0]) + "." +
                     std::to_string(which[1]) + "." + std::to_string(which[2]);
  // All make it, since nobody waits: it says the same for each.
  if (symlink(name.text().c_str(), path.c_str()) == 0) link = path;
  return path;
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
  if (mode & MPI_MODE_CREATE) {
    // Each for itself, whoever comes first makes it: only that it was there before is known then.
    const bool exclusive = (mode & MPI_MODE_EXCL) != 0 && (g->apart || a.result == -EEXIST);
    if (!failed) fd = make_file(r, comm, path.c_str(), exclusive ? O_CREAT | O_EXCL : O_CREAT);
    if (comm != MPI_COMM_SELF) MPI_Bcast(&fd, 1, MPI_INT, 0, comm);
    mode &= ~(MPI_MODE_CREATE | MPI_MODE_EXCL);
  }
  if (!g->apart && r.options.comm != kNone) (void)meet(s, *g);
  if (!failed && (fd >= 0 || fd == -EACCES || fd == -EISDIR))
    fd = open_in_root(r.root, path.c_str(), O_PATH | O_CLOEXEC, 0);
  const auto name = std::make_shared<Name>();
  if (fd >= 0) name->reset(fd);
  // MPI allows a communicator one collective call at a time.
  std::unique_lock alone(r.self_mutex, std::defer_lock);
  if (comm == MPI_COMM_SELF) alone.lock();
  if (const int error = agree(comm, *name, fd < 0 ? -fd : 0); error != 0) {
    s.outcome->result = -error;
    if (failed && error == -a.result) s.emulate();
  } else {
    MPI_Info info = build_info(r.text(s.known(s.args->info, 0)));
    const std::string given = r.beside ? name_beside(r, comm, *name, f.link) : name->text();
    s.answer(MPI_File_open(comm, given.c_str(), mode, info, &f.file));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  }
  if (alone) alone.unlock();
  // One that could not be opened is remembered where others may wait for this rank at its calls.
  const bool open = f.file != MPI_FILE_NULL, wanted = a.handle != 0 && a.result >= 0;
  if (!wanted) {
    if (open) MPI_File_close(&f.file);
  } else if (open || !g->apart) {
    if (r.shares || g->ranks.size() > 1) f.name = name;
    name->leave_number();
    const std::lock_guard lock(r.files_mutex);
    r.files[a.handle] = std::move(f);
  }
}

// By the one that makes a file longer for all. Where they call it together, Open MPI's others look
// how long the file is while that one is at it: whoever comes late leaves out a collective call
// that others make, and takes what that sent for the answer to a later one.
int preallocate(Replayer& r, const Name& name, uint64_t size) {
  const std::lock_guard lock(r.self_mutex);
  MPI_File alone = MPI_FILE_NULL;
  int code =
      MPI_File_open(MPI_COMM_SELF, name.text().c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &alone);
  if (code != MPI_SUCCESS) return code;
  code = MPI_File_preallocate(alone, static_cast<MPI_Offset>(size));
  MPI_File_close(&alone);
  return code;
}

// What goes into a call that moves data, whatever its name.
struct Data {
  MPI_File file;
  MPI_Offset offset;
  void* at;
  int count;
  MPI_Datatype type;
  MPI_Status* status;
  MPI_Request* request;
};
struct DataCall {
  int (*call)(Data&);
  bool tells;  // how many bytes it moved; others have only begun
};
#include "layers/mpiio_replay.inc"

// What makes at once what this begins: nobody needs to wait for others in it, but where a split
// call may wait, too.
uint32_t at_once(uint32_t op) {
  switch (op) {
    case FEIGN_MPIIO_FILE_IREAD:
    case FEIGN_MPIIO_FILE_IREAD_ALL:
      return FEIGN_MPIIO_FILE_READ;
    case FEIGN_MPIIO_FILE_IREAD_AT:
    case FEIGN_MPIIO_FILE_IREAD_AT_ALL:
      return FEIGN_MPIIO_FILE_READ_AT;
    case FEIGN_MPIIO_FILE_IREAD_SHARED:
      return FEIGN_MPIIO_FILE_READ_SHARED;
    case FEIGN_MPIIO_FILE_IWRITE:
    case FEIGN_MPIIO_FILE_IWRITE_ALL:
      return FEIGN_MPIIO_FILE_WRITE;
    case FEIGN_MPIIO_FILE_IWRITE_AT:
    case FEIGN_MPIIO_FILE_IWRITE_AT_ALL:
      return FEIGN_MPIIO_FILE_WRITE_AT;
    case FEIGN_MPIIO_FILE_IWRITE_SHARED:
      return FEIGN_MPIIO_FILE_WRITE_SHARED;
    case FEIGN_MPIIO_FILE_READ_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_READ_ALL;
    case FEIGN_MPIIO_FILE_READ_AT_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_READ_AT_ALL;
    case FEIGN_MPIIO_FILE_READ_ORDERED_BEGIN:
      return FEIGN_MPIIO_FILE_READ_ORDERED;
    case FEIGN_MPIIO_FILE_WRITE_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_WRITE_ALL;
    case FEIGN_MPIIO_FILE_WRITE_AT_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_WRITE_AT_ALL;
    case FEIGN_MPIIO_FILE_WRITE_ORDERED_BEGIN:
      return FEIGN_MPIIO_FILE_WRITE_ORDERED;
    default:
      return op;
  }
}
bool ends_split(uint32_t op) {
  return op == FEIGN_MPIIO_FILE_READ_ALL_END || op == FEIGN_MPIIO_FILE_READ_AT_ALL_END ||
         op == FEIGN_MPIIO_FILE_READ_ORDERED_END || op == FEIGN_MPIIO_FILE_WRITE_ALL_END ||
         op == FEIGN_MPIIO_FILE_WRITE_AT_ALL_END || op == FEIGN_MPIIO_FILE_WRITE_ORDERED_END;
}

// Whether so many bytes from there on, in etypes of the view, are more than the file has.
bool past_end(const File& f, MPI_Offset from, uint64_t bytes) {
  MPI_Offset size = 0, last = 0;
  if (bytes == 0 || MPI_File_get_size(f.file, &size) != MPI_SUCCESS) return false;
  from += static_cast<MPI_Offset>((bytes - 1) / f.unit);
  return MPI_File_get_byte_offset(f.file, from, &last) == MPI_SUCCESS &&
         last + static_cast<MPI_Offset>(f.unit) > size;
}

// Whether a read that is only begun may meet the end: there Open MPI's would never be over. Of one
// that all begin together, whether anybody's does, since ROMIO's is made together.
bool may_meet_end(Stream& s, uint32_t op, const File& f, bool split) {
  // Others may move the shared pointer before it is made.
  if (op == FEIGN_MPIIO_FILE_READ_ORDERED_BEGIN || op == FEIGN_MPIIO_FILE_IREAD_SHARED) return true;
  auto from = static_cast<MPI_Offset>(s.known(s.args->offset, 0));
  if (s.args->offset == kAbsent) MPI_File_get_position(f.file, &from);
  int may = past_end(f, from, s.a->length);
  if (split && f.group->apart)
    MPI_Allreduce(MPI_IN_PLACE, &may, 1, MPI_INT, MPI_MAX, f.group->comm);
  return may != 0;
}

int whence_of(uint32_t recorded) {
  return recorded == 602 ? MPI_SEEK_CUR : recorded == 604 ? MPI_SEEK_END : MPI_SEEK_SET;
}

// How a view has its data in the file. One that the program had made (MPI_Register_datarep) is not
// known here; one that was refused is refused again.
std::string representation(std::string recorded, int64_t result) {
  const bool known =
      recorded == "native" || recorded == "internal" || recorded == "external32" || result < 0;
  return known && !recorded.empty() ? std::move(recorded) : "native";
}

// The memory of a read or write, by its datatype where that fits.
Piece memory_of(Stream& s, bool writes) {
  char* base = writes ? s.r->data.get() : s.received.get();
  const auto room = static_cast<int64_t>(s.r->longest);
  const uint64_t count = s.value(s.args->count);
  if (s.args->type != kAbsent && count <= INT_MAX) {
    const Type& t = s.type(s.args->type);
    const bool same =
        t.size > 0 && t.size * static_cast<int64_t>(count) == static_cast<int64_t>(s.a->length);
    if (same && t.type != MPI_DATATYPE_NULL && t.extent >= 0 && t.true_extent >= 0 &&
        t.extent <= room && t.true_low >= 0 && t.true_low <= room && t.true_extent <= room) {
      const int64_t last = t.extent * static_cast<int64_t>(count - 1);
      if (last + t.true_extent + t.true_low <= room) return {base, static_cast<int>(count), t.type};
    }
  }
  return bytes_at(s, base, std::min<uint64_t>(s.a->length, s.r->longest));
}

}  // namespace

namespace {

constexpr char kBeside[] = ".feign-mpi-";

std::vector<std::string> names_in(int fd) {
  std::vector<std::string> names;
  DIR* const all = fd < 0 ? nullptr : fdopendir(fd);
  if (all == nullptr) return names;
  while (const dirent* each = readdir(all)) names.emplace_back(each->d_name);
  closedir(all);
  return names;
}

// With the files in it, which are all that MPI makes there.
void remove_directory(int parent, const char* name) {
  constexpr int kList = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Name directory;
  directory.reset(openat(parent, name, kList));
  const int fd = directory.number(0);
  for (const std::string& each : names_in(openat(fd, ".", kList)))
    (void)unlinkat(fd, each.c_str(), 0);
  (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void remove_all_beside(int root) {
  for (const std::string& name : names_in(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
    if (name.starts_with(kBeside)) remove_directory(root, name.c_str());
}

}  // namespace

bool of_shared_pointer(std::string_view name) {
  return name.find("_shared") != name.npos || name.find("_ordered") != name.npos;
}

void make_beside(Replayer& r) {
  std::array<char, 64> name{};
  if (r.rank == 0) {
    remove_all_beside(r.root);  // a replay that was ended left its own
    // No trace can name it: one that made a link in it would lead MPI out of the root.
    std::array<uint64_t, 2> number{};
    const bool random = getrandom(number.data(), sizeof number, 0) == sizeof number;
    (void)std::snprintf(name.data(), name.size(), "%s%016" PRIx64 "%016" PRIx64, kBeside, number[0],
                        number[1]);
    if (!random || mkdirat(r.root, name.data(), 0700) != 0) name[0] = '\0';
  }
  MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, r.world->world);
  const int fd = openat(r.root, name.data(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const int error = fd < 0 ? errno : 0;
  r.beside = std::make_shared<Name>();
  r.beside->reset(fd);
  if (r.rank == 0) r.beside_name = name.data();
  // Without it, all else can be replayed.
  if (agree(r.world->world, *r.beside, error) != 0) r.beside.reset();
}

void remove_beside(Replayer& r) {
  if (!r.beside_name.empty()) remove_directory(r.root, r.beside_name.c_str());
}

void close_files(Replayer& r) {
  // What the trace left open is left open: to close it is a call that all ranks would have to make.
  for (auto& [handle, f] : r.files)
    if (f.file != MPI_FILE_NULL &&
        (f.group == nullptr || !f.group->apart || f.group->ranks.size() == 1))
      MPI_File_close(&f.file);
}

void do_mpiio(Stream& s, uint32_t op) {
  Replayer& r = *s.r;
  const feign_activity& a = *s.a;
  const feign_op_info* op_info = r.host->op_info(r.host, op);
  const bool meets = mpiio_does(op) == Does::kMeet, later = s.args->request != kAbsent;
  if (r.options.io != kIoReal) {
    // The calls in it are made in its place; it says only that all ranks have come this far.
    const Group* g = nullptr;
    const std::string_view name = op_info->name;
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
    if (begun != MPI_REQUEST_NULL) MPI_Wait(&begun, MPI_STATUS_IGNORE);
    if (r.options.io == kIoOrder && meets && g != nullptr && g->meeting &&
        r.options.comm != kNone) {
      if (later) return s.refuse(*g);
      (void)meet(s, *g);
    } else if (r.options.io == kIoOrder && meets && g != nullptr && g->comm != MPI_COMM_NULL) {
      MPI_Request request = MPI_REQUEST_NULL;
      if (!later) {
        MPI_Barrier(g->comm);
      } else if (MPI_Ibarrier(g->comm, &request) == MPI_SUCCESS) {
        // A file has one split call at a time, which has no request that the trace could tell.
        const std::lock_guard lock(r.files_mutex);
        if (split)
          r.files[a.handle].begun = request;
        else
          remember(s, request);
      }
    }
    return s.skip("left to the posix calls in it");
  }
  if (op == FEIGN_MPIIO_FILE_OPEN) return open_file(s);
  if (op == FEIGN_MPIIO_FILE_DELETE) {
    if (a.path == 0) return s.skip("no path was recorded");
    const int64_t result = remove_below(r.root, r.text(a.path));
    // Why it cannot be removed MPI says more roughly than that.
    const bool same = a.result < 0 && result < 0 && (a.result == -ENOENT) == (result == -ENOENT);
    s.outcome->result = same ? a.result : result;
    return;
  }
  File file;
  {
    const std::lock_guard lock(r.files_mutex);
    const auto at = r.files.find(a.handle);
    if (at != r.files.end()) file = at->second;
  }
  if (file.file == MPI_FILE_NULL && file.group == nullptr) {
    if (a.handle == 0 || (a.marks & FEIGN_INHERITED))
      return s.skip("the trace does not tell its file");
    s.outcome->result = -EBADF;
    return;
  }
  const MPI_File f = file.file;
  // Ranks that share a process have a file each: they wait for each other, and then each makes what
  // all would have made.
  const bool meeting = meets && !later && file.group->meeting && r.options.comm != kNone;
  if (!file.group->apart && r.options.comm != kNone &&
      (!file.group->meeting || of_shared_pointer(op_info->name)))
    return s.refuse(*file.group);
  if (meeting && !meet(s, *file.group)) return;
  const bool reads = op_info->kind == FEIGN_KIND_READ, writes = op_info->kind == FEIGN_KIND_WRITE;
  if (f == MPI_FILE_NULL) {
    if (meeting && (reads || writes || op == FEIGN_MPIIO_FILE_SET_SIZE)) (void)meet(s, *file.group);
    if (op == FEIGN_MPIIO_FILE_CLOSE) {
      const std::lock_guard lock(r.files_mutex);
      r.files.erase(a.handle);
    }
    s.outcome->result = -EBADF;
    return;
  }
  MPI_Status status{};  // ROMIO says nothing of who moves nothing
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  if (reads || writes) {
    const bool failed = by_circumstance(a.result);
    if (failed && !meets) return s.emulate();
    if (writes && r.room.full(a.length)) {
      if (meeting) (void)meet(s, *file.group);
      s.outcome->result = -EDQUOT;
      s.outcome->why = r.room.why();
      return;
    }
    if (file.over && ends_split(op)) {
      s.outcome->result = a.result;
      return;
    }
    if (writes) r.room.add(a.length);
    // Any thread of the process completes Open MPI's requests of files, also one that another
    // thread has half made. So there are none where recorded ranks are its threads.
    const DataCall& begins = kMpiioData[op - FEIGN_MPIIO_FIRST];
    const uint32_t once = at_once(op);
    const bool split = once != op && mpiio_does(once) == Does::kMeet;
    const bool over = r.shares || (reads && !begins.tells && may_meet_end(s, op, file, split));
    const DataCall& call = over ? kMpiioData[once - FEIGN_MPIIO_FIRST] : begins;
    Piece m = memory_of(s, writes);
    const auto done = failed ? 0 : static_cast<uint64_t>(a.result);
    // What had no room then has none now.
    if (writes && begins.tells && (a.marks & FEIGN_NO_RESULT) == 0 && done < a.length)
      m = bytes_at(s, m.at, std::min<uint64_t>(done, r.longest));
    if (failed) m.count = 0;  // the others may have made it
    // In etypes of the view, as the program gave it.
    const auto at = static_cast<MPI_Offset>(s.known(s.args->offset, a.offset));
    Data data{f, at, m.at, m.count, m.type, &status, &request};
    code = call.call(data);
    if (split) {
      const std::lock_guard lock(r.files_mutex);
      r.files[a.handle].over = over || code != MPI_SUCCESS;
    }
    // Whoever goes on may make the file longer than another one finds it.
    if (meeting) (void)meet(s, *file.group);
    s.answer(code);
    if (failed && code == MPI_SUCCESS) {
      if (later && !split) remember(s, request, false, over);
      return s.emulate();
    }
    if (code != MPI_SUCCESS) return;
    if (later && !split) remember(s, request, false, over);
    if (!begins.tells) {
      // How many bytes it was shows when it is over.
      s.outcome->result = a.result;
      return;
    }
    MPI_Count moved = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &moved);
    s.outcome->result = moved == MPI_UNDEFINED ? 0 : static_cast<int64_t>(moved);
    // Of a collective read Open MPI says that it was all that was asked for.
    if (meeting && reads && done == a.length && s.outcome->result < a.result)
      s.outcome->result = a.result;
    if (meets && op != FEIGN_MPIIO_FILE_READ_ORDERED && reads && done < a.length &&
        s.outcome->result == static_cast<int64_t>(a.length)) {
      MPI_Offset from = at;
      if (s.args->offset == kAbsent && MPI_File_get_position(f, &from) == MPI_SUCCESS)
        from -= static_cast<MPI_Offset>(a.length / file.unit);
      if (past_end(file, from, a.length)) s.outcome->result = a.result;
    }
    return;
  }
  switch (op) {
    case FEIGN_MPIIO_FILE_CLOSE: {
      MPI_File closing = f;
      {
        const std::lock_guard lock(r.files_mutex);
        r.files.erase(a.handle);
      }
      s.answer(MPI_File_close(&closing));
      if (!file.link.empty()) (void)unlink(file.link.c_str());
      if (file.remove.empty()) return;
      (void)remove_below(r.root, file.remove);
      // Whoever goes on may make one of that name, which another must not remove.
      if (meeting)
        (void)meet(s, *file.group);
      else if (file.group->apart)
        MPI_Barrier(file.group->comm);
      return;
    }
    case FEIGN_MPIIO_FILE_SEEK:
    case FEIGN_MPIIO_FILE_SEEK_SHARED: {
      const bool shared = op == FEIGN_MPIIO_FILE_SEEK_SHARED;
      if (by_circumstance(a.result)) return s.emulate();
      const auto to = static_cast<MPI_Offset>(a.offset);
      const int whence = whence_of(a.flags);
      code = shared ? MPI_File_seek_shared(f, to, whence) : MPI_File_seek(f, to, whence);
      s.answer(code);
      if (code == MPI_SUCCESS) {
        // A shared pointer may have been moved by others since.
        MPI_Offset at = whence == MPI_SEEK_SET ? to : a.result;
        if (!shared) MPI_File_get_position(f, &at);
        s.outcome->result = at;
      }
      return;
    }
    case FEIGN_MPIIO_FILE_SET_VIEW: {
      // The second of its datatypes is the file's.
      const Type& etype = s.type(s.args->type);
      const Type& filetype = s.type(s.args->type2);
      if (etype.type == MPI_DATATYPE_NULL || filetype.type == MPI_DATATYPE_NULL)
        return s.skip("its datatypes are not known");
      const std::string format = representation(r.text(s.known(s.args->other, 0)), a.result);
      MPI_Info info = build_info(r.text(s.known(s.args->info, 0)));
      code = MPI_File_set_view(f, static_cast<MPI_Offset>(a.offset), etype.type, filetype.type,
                               format.c_str(), info);
      if (info != MPI_INFO_NULL) MPI_Info_free(&info);
      if (code == MPI_SUCCESS && etype.size > 0) {
        const std::lock_guard lock(r.files_mutex);
        r.files[a.handle].unit = static_cast<uint64_t>(etype.size);
      }
      return s.answer(code);
    }
    case FEIGN_MPIIO_FILE_SET_SIZE:
      code = MPI_File_set_size(f, static_cast<MPI_Offset>(a.length));
      // What one writes then, another must not cut off.
      if (meeting) (void)meet(s, *file.group);
      return s.answer(code);
    case FEIGN_MPIIO_FILE_PREALLOCATE:
      if (a.length > r.room.most()) {
        s.outcome->result = -EDQUOT;
        return;
      }
      if (!file.name) return s.answer(MPI_File_preallocate(f, static_cast<MPI_Offset>(a.length)));
      code = file.group->ranks[0] == s.rank && a.result >= 0 ? preallocate(r, *file.name, a.length)
                                                             : MPI_SUCCESS;
      if (meeting)
        (void)meet(s, *file.group);
      else if (file.group->apart)
        MPI_Bcast(&code, 1, MPI_INT, 0, file.group->comm);
      return a.result < 0 ? s.emulate() : s.answer(code);
    case FEIGN_MPIIO_FILE_SYNC:
      if (!r.shares) return s.answer(MPI_File_sync(f));
      // Open MPI syncs none while a request is under way in the process, whosever it is.
      if (a.result < 0) return s.emulate();
      if (file.group->apart) MPI_Barrier(file.group->comm);
      s.outcome->result = file.name->sync();
      return;
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
    case FEIGN_MPIIO_FILE_SET_INFO: {
      MPI_Info info = build_info(r.text(s.known(s.args->info, 0)));
      if (info == MPI_INFO_NULL) return s.emulate();
      s.answer(MPI_File_set_info(f, info));
      MPI_Info_free(&info);
      return;
    }
    default:
      return s.emulate();  // what it answers is the library's own
  }
}

}  // namespace feign::mpi
