// SPDX-License-Identifier: MIT
// What the replayer of libc's streams does inside of them (plugins/replayers/posix/libc_stream.h).
#include "plugins/replayers/posix/libc_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

namespace feign {
namespace {

#ifdef __GLIBC__

// setvbuf() that cannot move back to what was not read yet takes no buffer away.
TEST(StreamCopy, OneThatShouldHaveNoBufferHasAllOfTheOneThatItKept) {
  FILE* const from = tmpfile();
  const std::string text(5000, 'x');
  ASSERT_EQ(fwrite(text.data(), 1, text.size(), from), text.size());
  rewind(from);
  ASSERT_EQ(fgetc(from), 'x');
  ASSERT_EQ(lseek(fileno(from), 0, SEEK_SET), 0);
  ASSERT_NE(setvbuf(from, nullptr, _IONBF, 0), 0);
  const StreamCopy copy(*from);
  ASSERT_GT(copy.memory(), size_t{4000});

  FILE* const to = fdopen(dup(fileno(from)), "r+");
  std::unique_ptr<char[]> buffer;
  copy.into(*to, buffer);
  ASSERT_NE(buffer, nullptr);
  std::string read(3000, ' ');
  EXPECT_EQ(fread(read.data(), 1, read.size(), to), read.size());
  EXPECT_EQ(read, text.substr(0, read.size()));
  fclose(to);
  fclose(from);
}

#endif

}  // namespace
}  // namespace feign
