// SPDX-License-Identifier: MIT
// Layer stdio: libc's streams, whose buffers hold what the program's held.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "replayers/posix/calls.h"

namespace feign {

FILE* Context::file(const feign_activity& a) { return r->descriptors.file(a.handle, process); }

// A call on a stream whose bytes did not all go where they should: libc has given up the stream's
// buffer then. How much of it was written say the system calls in the call, which are made if it
// is left out.
void Context::lose(const feign_activity& a, Effect effect) {
  r->descriptors.lose(a.handle, process);
  if (effect == Effect::kClose && (a.marks & FEIGN_LAST)) {
    (void)r->descriptors.close(closing, process);  // still there if the trace has no system calls
    closing = a.handle;
  }
  (void)skip("failed with bytes of its stream's buffer: the system calls in it are made");
}

bool Context::unwritten(const feign_activity& a) const {
  return r->descriptors.unwritten(a.handle, process) != 0;
}

int64_t Context::fopen(const feign_activity& a) {
  const size_t left = a.handle2 != 0 ? give_up(a.handle2, true) : 0;
  const int64_t fd = open_stream(a);
  goes_on(a, fd, left);
  return fd;
}

int64_t Context::open_stream(const feign_activity& a) {
  const int64_t fd = open_file(a);
  if (fd < 0 || a.handle == 0) return fd;
  to_end(a, static_cast<int>(fd));
  return r->descriptors.file(a.handle, process, (a.flags & O_APPEND) != 0) != nullptr ? fd : -errno;
}

void Context::to_end(const feign_activity& a, int fd) {  // mode "a" starts there; "a+" does not
  if ((a.flags & O_APPEND) && !(a.flags & O_RDWR)) ::lseek(fd, 0, SEEK_END);
}

int64_t Context::fdopen(const feign_activity& a) {
  if (a.result < 0) return emulated(a.result);
  const int fd = r->descriptors.get(a.handle);
  r->descriptors.also_stream(a.handle, process);
  const int flags = ::fcntl(fd, F_GETFL);
  if ((a.flags & O_APPEND) && flags >= 0 && !(flags & O_APPEND)) {  // else it stays where it is
    ::fcntl(fd, F_SETFL, flags | O_APPEND);
    to_end(a, fd);
  }
  return r->descriptors.file(a.handle, process, (a.flags & O_APPEND) != 0) != nullptr ? 0 : -errno;
}

int64_t Context::freopen(const feign_activity& a) {
  if (a.handle2 == 0) return open_stream(a);
  r->descriptors.sync(a.handle2, process);
  if (a.path != 0) give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
  const int64_t fd = open_stream(a);
  if (a.path == 0) give_up(a.handle2, (a.marks & FEIGN_LAST) != 0);
  return fd;
}

// As `some(f, to, bytes)` reads. clearerr(3) is not in the trace: a stream that is at its end
// here was not if bytes were read.
template <typename Some>
int64_t Context::reads(const feign_activity& a, uint64_t length, Some&& some) {
  return on_file(a, [&](FILE* f) {
    const size_t most = fit(length), done = some(f, read_buffer, most);
    if (a.result <= 0 || done >= std::min(most, static_cast<size_t>(a.result))) return done;
    ::clearerr(f);
    return done + some(f, read_buffer, most - done);
  });
}

int64_t Context::fread(const feign_activity& a) {
  return reads(a, a.length,
               [](FILE* f, char* to, size_t bytes) { return ::fread(to, 1, bytes, f); });
}

// Calls that stop at some character read as much as they did then: what they looked for is not in
// the files here. They fill the stream's buffer where fread() may read past it.
int64_t Context::gets(const feign_activity& a) {
  if (a.result < 0) return emulated(a.result);
  const auto look = [](FILE* f) {
    if (const int next = std::getc(f); next != EOF) std::ungetc(next, f);
    return 0;
  };
  if (a.length == 0) return on_file(a, look);  // fscanf found something else there
  if (a.result == 0) return on_file(a, [](FILE* f) { return std::getc(f) != EOF; });
  const int64_t result = reads(a, static_cast<uint64_t>(a.result), read_by_characters);
  if (a.length > static_cast<uint64_t>(a.result) && result == a.result)
    (void)on_file(a, look);  // and met the end
  return result;
}

int64_t Context::ungetc(const feign_activity& a) {
  if (a.result < 0) return emulated(a.result);
  return on_file(a, [&](FILE* f) {
    // What a program gives back is mostly what it read, which was another byte than here. Any
    // other one libc keeps apart, and frees what it has not allocated when setvbuf follows.
    // A wide character is several bytes.
    for (uint64_t i = 0; i < std::clamp<uint64_t>(a.length, 1, MB_LEN_MAX); ++i)
      if (std::ungetc(read_last(f, static_cast<unsigned char>(a.result)), f) == EOF)
        return int64_t{EOF};
    return a.result;
  });
}

int64_t Context::fwrite(const feign_activity& a) {
  return on_file(a, [&](FILE* f) { return ::fwrite(out_buffer, 1, fit(a.length), f); });
}

// fwrite() keeps nothing in a small buffer.
int64_t Context::fputc(const feign_activity& a) {
  if (a.length != 1) return fwrite(a);
  return on_file(a, [&](FILE* f) { return std::putc(*out_buffer, f) != EOF; });
}

int64_t Context::fflush(const feign_activity& a) {
  if (a.handle == 0) return emulated(a.result);  // all that the process had open
  return on_file(a, [&](FILE* f) {
    return a.flags != 0 ? flush_but(f, a.length, read_buffer, fit(a.length)) : ::fflush(f);
  });
}

int64_t Context::fseek(const feign_activity& a) {
  return on_file(a, [&](FILE* f) {
    const int done = ::fseeko(f, static_cast<off_t>(a.offset), static_cast<int>(a.flags));
    return done < 0 ? -errno : 0;
  });
}

int64_t Context::ftell(const feign_activity& a) {
  return on_file(a, [](FILE* f) { return checked(::ftello(f)); });
}

int64_t Context::setvbuf(const feign_activity& a) {
  FILE* const f = file(a);
  if (f == nullptr) return -errno;
  return r->descriptors.set_buffer(f, static_cast<int>(a.flags), a.length);
}

// unlink(2) or rmdir(2), as libc does it.
int64_t Context::remove(const feign_activity& a) {
  const int64_t result = unlink(a, 0);
  return result == -EISDIR ? unlink(a, AT_REMOVEDIR) : result;
}

}  // namespace feign
