// SPDX-License-Identifier: MIT
// The names by which MPI opens files, and the directory that they are in.
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "base/jail.h"
#include "replayers/mpi/files.h"

namespace feign::mpi {
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

// MPI makes names of its own from a file's last one, which has to be the same in all processes: a
// number that is free in each, looked for from where it mostly is.
int agree(MPI_Comm comm, Name& name, int error) {
  int least = 700;
  for (int round = 0; round < 16; ++round) {
    const int number = error == 0 ? name.number(least) : 0;
    const int mine[3] = {error, number, -number};
    int all[3] = {0, 0, 0};
    FEIGN_MUST(MPI_Allreduce(mine, all, 3, MPI_INT, MPI_MAX, comm));
    if (all[0] != 0) return all[0];
    if (all[1] == -all[2]) return 0;
    least = all[1];
  }
  return 0;
}

std::string name_beside(Replayer& r, MPI_Comm comm, const Name& name, std::string& link) {
  int which[] = {static_cast<int>(r.rank), r.opened++, static_cast<int>(getpid())};
  FEIGN_MUST(MPI_Bcast(which, 3, MPI_INT, 0, comm));
  std::string path = r.beside->text() + "/" + std::to_string(which[0]) + "." +
                     std::to_string(which[1]) + "." + std::to_string(which[2]);
  // All make it, since nobody waits: it says the same for each.
  if (symlink(name.text().c_str(), path.c_str()) == 0) link = path;
  return path;
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
  FEIGN_MUST(MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, r.world->world));
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

}  // namespace feign::mpi
