// SPDX-License-Identifier: MIT
// A call's name and arguments as its description in layers/posix.h says what they mean.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "feign.h"
#include "layers/posix_ops.h"
#include "providers/strace/text.h"

namespace feign::strace {

// Calls by name: a description, or a reason to leave it out.
struct Known {
  const Call* call = nullptr;
  const LeftOutCall* left_out = nullptr;
  bool narrow = false;   // of programs of 32 bits only
  bool unknown = false;  // nobody has described it
};

class Arguments {
 public:
  explicit Arguments(const feign_host* host);

  // By any of its names; what nobody has described is left out, and why.
  Known known(std::string_view name);
  bool is_known(std::string_view name) const { return names_.contains(name); }
  // Fills both from "arguments) = result <time>"; false: error() says why. What follows is of the
  // last call that was read.
  bool read(const Call& call, Scan& s, feign_activity& a, std::vector<uint64_t>& values);
  const std::string& error() const { return error_; }
  bool after_cwd() const { return after_cwd_; }    // a name of it is relative to the directory
  uint32_t said_cwd() const { return said_cwd_; }  // that -y says it was in; 0: it does not
  const std::string& requests() const { return requests_; }  // io_submit's array
  bool made_up() const { return made_up_; }                  // strace -e inject: no call was made
  uint64_t paths_lost() const { return paths_lost_; }        // of all calls that had one

  // The text in a descriptor's annotation: mostly the same as the last time.
  uint32_t hint(int32_t fd, std::string_view annotation);
  // … between quotes.
  uint32_t text_of(std::string_view quoted);
  // The flags that `text` begins with, by their names in an argument's table or as numbers; 0 if it
  // begins with none.
  uint64_t flags_at(const CallArg& arg, std::string_view text) {
    Scan s(text);
    uint64_t value = 0;
    return flags(arg, s, value) ? value : 0;
  }

 private:
  bool listed(const Call& call, Scan& s, feign_activity& a, std::vector<uint64_t>& values,
              bool& is_cwd, unsigned& next, unsigned pairs = 0);
  bool words(const CallArg& arg, bool high_first, Scan& s, feign_activity& a);
  bool members(const Call& call, const CallArg* first, unsigned& next, const Scan& s,
               feign_activity& a, std::vector<uint64_t>& values, bool& is_cwd);
  bool result(const Call& call, Scan& s, feign_activity& a, const std::vector<uint64_t>& values,
              bool short_of);
  bool wrong_argument(const CallArg& arg, unsigned number, const Scan& at);
  bool argument(const CallArg& arg, Scan& s, feign_activity& a, std::vector<uint64_t>& values,
                bool& is_cwd);
  uint32_t names(std::string_view text);
  static void identity(std::string_view text, std::string_view prefix,
                       std::vector<uint64_t>& values);
  static void times(Scan s, bool micro, std::vector<uint64_t>& values);
  bool flags(const CallArg& arg, Scan& s, uint64_t& value);
  bool wrong(const char* what) {
    error_ = what;
    return false;
  }

  const feign_host* host_;
  std::unordered_map<std::string_view, Known> names_;
  std::unordered_map<std::string_view, int> errors_;
  // Calls without a description, as they turned up.
  struct Unknown {
    std::string name;
    LeftOutCall call;
  };
  std::vector<std::unique_ptr<Unknown>> unknown_;
  std::string scratch_, error_, requests_;
  bool after_cwd_ = false;
  bool made_up_ = false;
  bool lost_path_ = false;    // an address stands there instead
  bool lost_second_ = false;  // … of the second
  uint64_t paths_lost_ = 0;
  uint32_t said_cwd_ = 0;
  uint32_t said_second_ = 0;   // what -y says that the second descriptor is
  int64_t true_result_ = -1;   // behind a pointer
  bool lost_result_ = false;   // … of which only the address is there
  bool known_ = false;         // anything of the last flags()
  bool microseconds_ = false;  // what the call's times count in
  struct Hint {
    std::string text;
    uint32_t id = 0;
  };
  std::vector<Hint> hints_{1024};
  struct FlagText {
    const feign_name* names = nullptr;
    std::string text;
    uint64_t value = 0;
    bool known = false;  // any name or number of it
  };
  std::vector<FlagText> flag_texts_{256};
};

}  // namespace feign::strace
