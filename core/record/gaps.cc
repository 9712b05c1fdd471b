// SPDX-License-Identifier: MIT
#include "record/gaps.h"

namespace feign {

std::vector<Gap> gaps_of(const feign_control& c) {
  std::vector<Gap> all;
  const auto say = [&](uint64_t count, const std::string& before, const std::string& after,
                       bool asked_for = false) {
    if (count != 0) all.push_back({before + std::to_string(count) + after, asked_for});
  };
  const auto number = [](uint64_t count, const char* one, const char* several) {
    return count == 1 ? one : several;
  };
  if (c.sample > 1)
    say(c.sample, "not in it: reads and writes but for one in ", ", taken by chance (--sample)",
        true);
  say(c.pauses, "not in it: what was done while it was paused (",
      c.pauses == 1 ? " time)" : " times)", true);
  say(c.unhooked, "",
      number(c.unhooked,
             " program has another libc than feign: its system calls are not in the trace",
             " programs have another libc than feign: their system calls are not in the trace"));
  say(c.silent, "",
      number(c.silent,
             " thread is not recorded to its end: it shares its storage with another (clone), or "
             "may not read the processor's counter (seccomp, prctl)",
             " threads are not recorded to their end: they share their storage with another "
             "(clone), or may not read the processor's counter (seccomp, prctl)"));
  say(c.strangers, "not in it: programs of another user, who may not write into the recording (",
      ", and what they started): --all-users lets them");
  say(c.overlooked, "",
      number(c.overlooked, " request of io_uring is", " requests of io_uring are") +
          std::string(" not in the trace: a program works on its rings without liburing "
                      "or libc (seen is one that the command names, as in feign record -- fio …, "
                      "if it enters the "
                      "kernel for each)"));
  say(c.unended, "not in it: ",
      number(c.unended,
             " request of io_uring that had not ended when the program did, or closed its ring: "
             "whether it was made nobody was told",
             " requests of io_uring that had not ended when the program did, or closed their "
             "ring: whether they were made nobody was told"));
  say(c.dropped, "",
      number(c.dropped, " call", " calls") +
          std::string(c.max_bytes != 0
                          ? " found no room (--max-size): the trace ends before the command did"
                          : " found no room (a full disk, a limit of address space, or an "
                            "emulator)"));
  return all;
}

}  // namespace feign
