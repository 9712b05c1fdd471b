// SPDX-License-Identifier: MIT
#include "record/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace feign {

Result<std::string> program_of(const std::string& name) {
  struct stat st {};
  if (name.find('/') != std::string::npos) {
    if (stat(name.c_str(), &st) != 0) return errno_error(name, errno);
    if (S_ISDIR(st.st_mode)) return errno_error(name, EISDIR);
    if (access(name.c_str(), X_OK) != 0) return errno_error(name, errno);
    return name;
  }
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/bin:/usr/bin";
  while (true) {
    const size_t colon = rest.find(':');
    std::string file(rest.substr(0, colon));
    file += (file.empty() ? "./" : "/") + name;
    if (stat(file.c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(file.c_str(), X_OK) == 0)
      return file;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return Error(FEIGN_ERR_ARGUMENT, (name.empty() ? "''" : name) + ": no such program in $PATH");
}

namespace {

// Whether the program names a loader, which takes libraries. Its table of headers may lie anywhere
// in the file (patchelf puts it at the end).
bool has_loader(int fd, const Elf64_Ehdr& e) {
  for (uint64_t i = 0; i < e.e_phnum; ++i) {
    Elf64_Phdr h;
    if (pread(fd, &h, sizeof h, static_cast<off_t>(e.e_phoff + i * sizeof h)) !=
        static_cast<ssize_t>(sizeof h))
      return false;
    if (h.p_type == PT_INTERP) return true;
  }
  return false;
}

std::string hindrance(const std::string& program, int depth = 0) {
  const std::string advice = "; --tracer strace records it all the same";
  struct stat st {};
  if (stat(program.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
      (st.st_mode & S_ISGID && st.st_gid != getegid()))
    return program +
           " runs as another user (setuid): the system lets no library into it; record as that "
           "user, or what it starts";
  std::array<char, 4096> head{};
  const int fd = open(program.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t size = pread(fd, head.data(), head.size() - 1, 0);
  Elf64_Ehdr e;
  memcpy(&e, head.data(), sizeof e);
  const bool elf =
      size >= static_cast<ssize_t>(sizeof e) && memcmp(e.e_ident, ELFMAG, SELFMAG) == 0;
  const bool loaded = elf && has_loader(fd, e);
  close(fd);
  if (size > 2 && head[0] == '#' && head[1] == '!' && depth < 4) {
    std::string line(head.data() + 2);
    line = line.substr(0, line.find('\n'));
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) return {};
    line = line.substr(begin);
    return hindrance(line.substr(0, line.find_first_of(" \t")), depth + 1);
  }
  if (!elf) return {};
  if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != EM_X86_64)
    return program + " is no program for x86-64" + advice;
  if (loaded) return {};
  // The loader as a command (ld.so PROGRAM) puts it in by itself.
  if (program.substr(program.rfind('/') + 1).starts_with("ld-linux-")) return {};
  return program + " is statically linked: no library can be put into it" + advice;
}

}  // namespace

std::string why_not_recorded(const std::string& name) {
  auto program = program_of(name);
  return program ? hindrance(*program) : std::string();
}

}  // namespace feign
