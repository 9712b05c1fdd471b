// SPDX-License-Identifier: MIT
// What the parts of layer mpiio share: names for MPI (file_names.cc), reads and writes
// (file_data.cc), all other calls (files.cc).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

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

// Gives a file the name by which all ranks of `comm` open it: the same for each. All of them find
// it, or none, and the first error is everybody's: 0, or an errno. Collective.
int agree(MPI_Comm comm, Name& name, int error);

// A name of this file's alone in the directory that make_beside() made, and on this host: Open MPI
// calls a semaphore after its last part, which another replay, or one that was ended, may have.
// `link` is what has to be removed. Collective.
std::string name_beside(Replayer& r, MPI_Comm comm, const Name& name, std::string& link);

// 0 or -errno.
int64_t remove_below(int root, const std::string& path);

// Failed for a reason that lies in the machine of then or in its arguments, or that MPI does not
// name: made again, it could succeed, and change what did not change.
bool by_circumstance(int64_t result);

// A call on an open file.
struct FileCall {
  Stream& s;
  uint32_t op;
  const File& file;
  bool meets;  // all ranks of the file make it
  bool later;  // it ends by a request
  // Ranks that share a process have a file each: they wait for each other, and then each makes what
  // all would have made.
  bool meeting;

  const feign_activity& a = *s.a;
  Replayer& r = *s.r;

  void meet_others() const {
    if (meeting) (void)meet(s, *file.group);
  }
};

void read_or_write(const FileCall& c);

}  // namespace feign::mpi
