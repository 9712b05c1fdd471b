// SPDX-License-Identifier: MIT
#include "providers/strace/arguments.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/path.h"
#include "capture/acl.h"
#include "capture/identity.h"

namespace feign::strace {
namespace {

// The permission bits that an attribute stands for, if it is an access control list; else 0.
uint32_t mode_of_acl(std::string_view list) {
  uint32_t version = 0;
  if (list.size() < FEIGN_ACL_LEAST) return 0;
  memcpy(&version, list.data(), sizeof version);
  if (version != FEIGN_ACL_VERSION) return 0;
  feign_acl_mode mode{};
  feign_acl_entry entry{};
  for (size_t at = 4; at + sizeof entry <= list.size(); at += sizeof entry) {
    memcpy(&entry, list.data() + at, sizeof entry);
    feign_acl_add(&mode, entry);
  }
  return feign_acl_st_mode(&mode);
}

// Moves to behind "member=" in the struct that starts here; false if it is not there.
bool find_member(Scan& s, std::string_view member) {
  Scan end = s;
  if (member.empty() || !end.skip_argument()) return false;
  Scan at(std::string_view(s.p, static_cast<size_t>(end.p - s.p)));
  for (++at.p; !at.done(); ++at.p) {
    if (at.peek() == '"') {  // its text may look like members
      if (!at.skip_string()) return false;
      --at.p;
      continue;
    }
    if (is_name(at.p[-1]) || !at.rest().starts_with(member)) continue;
    const char* const behind = at.p + member.size();
    if (behind == at.end || *behind != '=') continue;
    s.p = behind + 1;
    return true;
  }
  return false;
}

// Whether the flags that start here have this one, by its name or as a number.
bool has_flag(Scan s, std::string_view name, int64_t bit) {
  const std::string_view text = s.rest().substr(0, s.rest().find_first_of(",})"));
  int64_t number = 0;
  return text.find(name) != text.npos || (s.number(number) && (number & bit) != 0);
}

// Calls that are younger than strace 4.8, by number: those of x86-64, and from 424 on of every
// machine (asm/unistd_64.h). A strace that does not know a call prints "syscall_326(" or, since
// 4.21, "syscall_0x146(", and all arguments as numbers: its paths are lost.
constexpr std::string_view kFrom314 =
    "sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load "
    "bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 "
    "pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq";
constexpr std::string_view kFrom424 =
    "pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount "
    "fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd "
    "faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd "
    "landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret "
    "process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 "
    "map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount "
    "lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat "
    "listxattrat removexattrat open_tree_attr file_getattr file_setattr";

std::string_view by_number(std::string_view name) {
  Scan s(name);
  int64_t number = 0;
  if (!s.take("syscall_") || !s.number(number) || !s.done()) return {};
  std::string_view names = number < 424 ? kFrom314 : kFrom424;
  for (number -= number < 424 ? 314 : 424; number > 0 && !names.empty(); --number)
    names.remove_prefix(std::min(names.find(' '), names.size() - 1) + 1);
  return number < 0 ? std::string_view{} : names.substr(0, names.find(' '));
}

}  // namespace

Arguments::Arguments(const feign_host* host) : host_(host) {
  for (const Call& call : posix_calls())
    if (call.op != 0) names_[call.name].call = &call;
  for (const LeftOutCall& call : posix_left_outs()) names_[call.name].left_out = &call;
  for (const CallAlias& alias : posix_aliases()) names_[alias.name].call = &posix_calls()[alias.op];
  for (const char* name : {"_llseek", "mmap2", "stat64", "lstat64", "fstat64", "fcntl64"})
    names_[name].narrow = true;
  for (int e = 1; e < 134; ++e)
    if (const char* name = strerrorname_np(e)) errors_[name] = e;
  errors_["EWOULDBLOCK"] = EAGAIN;
  errors_["EOPNOTSUPP"] = EOPNOTSUPP;
  errors_["EDEADLOCK"] = EDEADLK;
}

Known Arguments::known(std::string_view name) {
  if (const auto at = names_.find(name); at != names_.end()) return at->second;
  if (const std::string_view called = by_number(name); !called.empty()) return known(called);
  // Before 4.10 names on MIPS begin with the calling convention's.
  for (const std::string_view convention : {"o32_", "n32_", "n64_"})
    if (name.starts_with(convention)) return known(name.substr(convention.size()));
  auto made = std::make_unique<Unknown>();
  made->name = name;
  made->call = {made->name.c_str(),
                name.starts_with(kNoName) ? "it was over before strace saw which"
                                          : "no description of this call",
                FEIGN_COMPUTED};
  Known k;
  k.left_out = &made->call;
  k.unknown = !name.starts_with(kNoName);
  names_[made->name] = k;
  unknown_.push_back(std::move(made));
  return k;
}

uint32_t Arguments::hint(int32_t fd, std::string_view annotation) {
  Hint& h = hints_[static_cast<uint32_t>(fd) % hints_.size()];
  if (h.id != 0 && h.text == annotation) return h.id;
  h.text.assign(annotation);
  std::string_view path = annotation;
  // "</dev/null<char 1:3>>": what the file is stands behind its name.
  if (path.ends_with('>'))
    if (const size_t nested = path.rfind('<'); nested != path.npos)
      if (const std::string_view what = path.substr(nested);
          what.starts_with("<char ") || what.starts_with("<block "))
        path = path.substr(0, nested);
  if (path.find('\\') != std::string_view::npos) {
    unescape(path, scratch_);
    path = scratch_.c_str();  // a name ends at a zero byte
  }
  constexpr size_t kLongest = size_t{16} << 10;  // no path is
  if (path.size() > kLongest) path = {};
  h.id = host_->intern(host_, path.data(), path.size());
  return h.id;
}

uint32_t Arguments::text_of(std::string_view quoted) {
  if (quoted.find('\\') != std::string_view::npos) {
    unescape(quoted, scratch_);
    quoted = scratch_.c_str();
  }
  return host_->intern(host_, quoted.data(), quoted.size());
}

bool Arguments::flags(const CallArg& arg, Scan& s, uint64_t& value) {
  const char* start = s.p;
  while (!s.done() && (is_name(*s.p) || *s.p == '|')) ++s.p;
  std::string_view text(start, static_cast<size_t>(s.p - start));
  // statx's in -X raw and verbose: "|0x900", "0 /* AT_STATX_SYNC_AS_STAT */|0x900 /* … */".
  std::string parts;
  for (Scan next = s; next.take(" /* ");) {
    while (!next.done() && !next.take(" */")) ++next.p;
    if (next.peek() != '|') break;
    start = next.p;
    while (!next.done() && (is_name(*next.p) || *next.p == '|')) ++next.p;
    if (parts.empty()) parts = text;
    parts.append(start, next.p);
    text = parts;
    s = next;
  }
  if (text.starts_with('|')) text.remove_prefix(1);
  if (text.empty()) return false;
  const size_t slot = (text.size() * 31 + static_cast<unsigned char>(text.back()) * 7 +
                       static_cast<unsigned char>(text[text.size() / 2])) %
                      flag_texts_.size();
  FlagText& cached = flag_texts_[slot];
  if (cached.names == arg.names && cached.text == text) {
    value = cached.value;
    known_ = cached.known;
    return true;
  }
  value = 0;
  known_ = false;
  Scan t(text);
  while (!t.done()) {
    int64_t number = 0;
    if (t.number(number)) {
      value |= static_cast<uint64_t>(number);
      known_ = true;
    } else {
      const char* from = t.p;
      while (is_name(t.peek())) ++t.p;
      const std::string_view name(from, static_cast<size_t>(t.p - from));
      const auto* end = arg.names + arg.name_count;
      const auto* at =
          std::find_if(arg.names, end, [&](const feign_name& n) { return name == n.name; });
      // A name that we do not know stands for bits that we cannot set; the call itself is known.
      if (at != end) {
        value |= at->value;
        known_ = true;
      }
      if (name.empty()) return false;
    }
    if (!t.done() && !t.take('|')) return false;
  }
  cached = {arg.names, std::string(text), value, known_};
  return true;
}

// Two times of whatever form: four values, s and ns of each. What is none of them leaves no values,
// which stands for the current time.
void Arguments::times(Scan s, bool micro, std::vector<uint64_t>& values) {
  values.clear();
  Scan end = s;
  if (s.peek() == 'N' || !end.skip_argument()) return;
  bool single = false;
  std::vector<uint64_t> all;
  char before = ' ';
  while (s.p != end.p) {
    int64_t number = 0;
    if (s.take("/*")) {
      while (s.p != end.p && !s.take("*/")) ++s.p;
    } else if (s.take("UTIME_NOW") || s.take("UTIME_OMIT")) {
      if (all.size() % 2 == 0) all.push_back(0);
      all.push_back(s.p[-1] == 'W' ? UTIME_NOW : UTIME_OMIT);
    } else if (s.take("tv_usec")) {
      micro = true;
    } else if (s.take("actime") || s.take("modtime")) {
      single = true;
    } else if ((is_digit(s.peek()) || s.peek() == '-') && !is_name(before) && s.number(number)) {
      all.push_back(static_cast<uint64_t>(number));
      if (single) all.push_back(0);
      before = '0';
      continue;
    } else {
      before = *s.p++;
      continue;
    }
    before = ' ';
  }
  if (all.size() != 4) return;
  if (micro)
    for (const size_t i : {1, 3})
      if (all[i] < 1'000'000) all[i] *= 1000;
  values = std::move(all);
}

// Which file it is, if it has several names (strace -v).
void Arguments::identity(std::string_view text, std::string_view prefix,
                         std::vector<uint64_t>& values) {
  const auto member = [&](std::string_view name, int64_t& number) {
    const size_t at = text.find(std::string(prefix).append(name));
    if (at == text.npos) return false;
    Scan s(text.substr(at + prefix.size() + name.size()));
    return s.number(number);
  };
  int64_t links = 0, inode = 0, device = 0, major = 0, minor = 0;
  if (!member("nlink=", links) || links < 2 || !member("ino=", inode)) return;
  if (!member("dev=", device)) {  // not -X raw
    if (member("dev=makedev(", major)) {
      Scan s(text.substr(text.find(',', text.find("dev=makedev(")) + 1));
      s.blanks();
      if (!s.number(minor)) return;
    } else if (!member("dev_major=", major) || !member("dev_minor=", minor)) {
      return;
    }
    device = static_cast<int64_t>(
        feign_device(static_cast<uint64_t>(major), static_cast<uint64_t>(minor)));
  }
  values.assign(1, feign_identity(static_cast<uint64_t>(device), static_cast<uint64_t>(inode)));
}

// The entries of a directory, {…, d_type=DT_REG, d_name="x"}, as Role::kNames has them; 0: it shows
// none.
uint32_t Arguments::names(std::string_view text) {
  constexpr std::string_view kName = "d_name=", kType = "d_type=", kTypes = "?pc?d?b?f?l?s";
  std::string all;
  for (size_t at = text.find(kName), next = 0, after = 0; at != text.npos; at = next) {
    const std::string_view before = text.substr(after, at - after);  // numbers and names of types
    Scan s(text.substr(at + kName.size()));
    const char* const start = s.p + 1;
    if (s.peek() != '"' || !s.skip_string()) break;
    unescape({start, static_cast<size_t>(s.p - start) - 1}, scratch_);
    const bool cut = s.rest().starts_with("...");
    after = text.size() - s.rest().size();
    next = text.find(kName, after);
    std::string_view entry = before.substr(std::min(before.rfind('{'), before.size()));
    if (entry.find(kType) == entry.npos) {  // of getdents it stands behind
      entry = text.substr(after, next - after);
      entry = entry.substr(0, entry.find('}'));
    }
    const std::string name(scratch_.c_str());
    if (cut || name.empty() || name == "." || name == ".." || name.find('/') != name.npos) continue;
    size_t type = 0;
    if (const size_t is = entry.find(kType); is != entry.npos) {
      Scan t(entry.substr(is + kType.size()));
      if (int64_t number = 0; t.number(number)) {
        type = static_cast<size_t>(number);
      } else {
        const std::string_view known = t.rest().substr(0, t.rest().find_first_of(", }"));
        constexpr std::pair<std::string_view, size_t> kKnown[] = {
            {"DT_FIFO", DT_FIFO}, {"DT_CHR", DT_CHR}, {"DT_DIR", DT_DIR},  {"DT_BLK", DT_BLK},
            {"DT_REG", DT_REG},   {"DT_LNK", DT_LNK}, {"DT_SOCK", DT_SOCK}};
        for (const auto& [word, value] : kKnown)
          if (known == word) type = value;
      }
    }
    if (!all.empty()) all += '/';
    all += type < kTypes.size() ? kTypes[type] : '?';
    all += name;
  }
  return all.empty() ? 0 : host_->intern(host_, all.data(), all.size());
}

// Sets what one argument says. The scan stands behind what was understood; the rest of the argument
// (annotations, comments) is skipped by the caller.
bool Arguments::argument(const CallArg& arg, Scan& s, feign_activity& a,
                         std::vector<uint64_t>& values, bool& is_cwd) {
  int64_t number = 0;
  switch (arg.role) {
    case Role::kSkip:
    case Role::kBuffer:
      return true;
    case Role::kFd:
    case Role::kFd2:
    case Role::kDir:
    case Role::kDir2: {
      uint32_t& to = arg.role == Role::kFd || arg.role == Role::kDir ? a.handle : a.handle2;
      if (s.take("AT_FDCWD")) {
        to = FEIGN_CWD;
        is_cwd |= arg.role == Role::kDir;
        number = -100;
      } else if (s.number(number)) {
        if (number < std::numeric_limits<int32_t>::min() || number > 0xFFFFFFFF)
          return wrong("a descriptor out of range");
        // Raw numbers are unsigned.
        if (number > std::numeric_limits<int32_t>::max()) number = static_cast<int32_t>(number);
        if (number == -100 && (arg.role == Role::kDir || arg.role == Role::kDir2)) {
          to = FEIGN_CWD;
          is_cwd |= arg.role == Role::kDir;
        } else {
          to = FEIGN_FD(number);
        }
      } else {
        return wrong("want a descriptor");
      }
      if (Scan next = s; to == FEIGN_CWD && s.peek() == ' ') {  // -X verbose
        next.blanks();
        if (next.take("/* AT_FDCWD */")) s = next;
      }
      if (s.peek() == '<') {
        const char* start = s.p + 1;
        if (!s.skip_angle()) return wrong("a descriptor's annotation does not end");
        const std::string_view text(start, static_cast<size_t>(s.p - start) - 1);
        // Another file may have the name of one that is gone, which the kernel says behind it.
        const bool marked = s.rest().starts_with(kGone.substr(1));  // by strace since 5.19
        const std::string named(marked ? std::string(text).append(kGone) : std::string());
        const uint32_t what = hint(static_cast<int32_t>(number), marked ? named : text);
        if (&to == &a.handle2) said_second_ = what;
        if (&to == &a.handle || (to == FEIGN_CWD && (a.handle == 0 || a.handle == FEIGN_CWD))) {
          a.file = what;
          if (!marked && !text.ends_with(kGone)) a.marks |= FEIGN_TOLD;
        }
        if (to == FEIGN_CWD && a.file != 0 && (a.handle == 0 || a.handle == FEIGN_CWD))
          said_cwd_ = a.file;
      }
      return true;
    }
    case Role::kPath:
    case Role::kPath2:
    case Role::kText2:
    case Role::kReadback2: {
      if (s.peek() != '"') {  // an address: the call had no readable path, or strace -e raw
        const bool none = s.take("NULL") || s.peek() == '@' || (s.number(number) && number == 0);
        lost_path_ |= arg.role == Role::kPath && !none;  // @: of a socket that no file stands for
        lost_second_ |= (arg.role == Role::kPath2 || arg.role == Role::kText2) && !none;
        return true;
      }
      const char* start = s.p + 1;
      if (!s.skip_string()) return wrong("a string that does not end");
      const std::string_view text(start, static_cast<size_t>(s.p - start) - 1);
      // Cut by -s: not the whole of it. Paths that a call is given are never cut.
      if ((arg.role == Role::kReadback2 || arg.role == Role::kText2) && s.take("...")) return true;
      (arg.role == Role::kPath ? a.path : a.path2) = text_of(text);
      return true;
    }
    case Role::kNames: {
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("an array that does not end");
      a.path2 = names({s.p, static_cast<size_t>(inner.p - s.p)});
      return true;
    }
    case Role::kLength:
    case Role::kOffset:
      if (s.take("NULL")) return true;
      if (const bool inverted = s.take('~'); !s.number(number))
        return wrong("want a number");
      else if (inverted)
        number = static_cast<int64_t>(~static_cast<uint64_t>(number) & 0xFFFFFFFF);
      (arg.role == Role::kLength ? a.length : a.offset) = static_cast<uint64_t>(number);
      return true;
    case Role::kFlags:
    case Role::kMode: {
      uint64_t value = 0;
      if (!flags(arg, s, value)) {
        if (arg.role == Role::kFlags) return true;  // {…} or NULL: nothing to keep
        return wrong("want permission bits");
      }
      (arg.role == Role::kFlags ? a.flags : a.mode) = static_cast<uint32_t>(value);
      return true;
    }
    case Role::kValue:
    case Role::kAt: {
      if (arg.index > 15) return true;
      uint64_t value = 0;
      Scan inner = s;  // the caller skips "[…]" as a whole
      inner.take('[');
      if (arg.role == Role::kAt && s.peek() != '[')  // NULL, as a number or not; or an address
        value = FEIGN_NO_OFFSET;
      else if ((arg.names == nullptr || !flags(arg, inner, value)) && inner.number(number))
        value = static_cast<uint64_t>(number);
      if (values.size() <= arg.index) values.resize(arg.index + size_t{1});
      values[arg.index] = value;
      return true;
    }
    case Role::kResult:
      if (Scan inner = s; inner.take('[') && inner.number(number))
        true_result_ = number;
      else
        lost_result_ = true;
      return true;
    case Role::kTimes:
      times(s, microseconds_, values);
      return true;
    case Role::kIocbs: {
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("an array that does not end");
      requests_.assign(s.p, static_cast<size_t>(inner.p - s.p));
      return true;
    }
    case Role::kIov: {
      values.clear();
      if (s.peek() != '[') return true;
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("an array that does not end");
      std::string_view text(s.p, static_cast<size_t>(inner.p - s.p));
      for (size_t at = text.find("iov_len="); at != std::string_view::npos;
           at = text.find("iov_len=")) {
        Scan len(text.substr(at + 8));
        if (!len.number(number)) return wrong("want iov_len=BYTES");
        number = std::max<int64_t>(number, 0);  // no length that any call takes: it failed
        values.push_back(static_cast<uint64_t>(number));
        a.length += static_cast<uint64_t>(number);
        text = len.rest();
      }
      if (text.ends_with("...]")) {  // cut by -s: the result is all that is left to tell
        values.clear();
        a.length = 0;
      }
      return true;
    }
    case Role::kAcl: {
      if (s.peek() != '"') return true;
      const char* start = s.p + 1;
      if (!s.skip_string()) return wrong("a string that does not end");
      unescape({start, static_cast<size_t>(s.p - start) - 1}, scratch_);
      if (!s.take("...")) a.mode = mode_of_acl(scratch_);
      return true;
    }
    case Role::kStat:
    case Role::kStatx: {
      if (s.peek() != '{') return true;
      Scan inner = s;
      if (!inner.skip_argument()) return wrong("a struct that does not end");
      const std::string_view text(s.p, static_cast<size_t>(inner.p - s.p));
      const bool x = arg.role == Role::kStatx;
      if (const size_t at = text.find(x ? "stx_mode=" : "st_mode="); at != std::string_view::npos) {
        static constexpr feign_name kTypes[] = {
            {"S_IFREG", 0100000}, {"S_IFDIR", 040000}, {"S_IFLNK", 0120000},  {"S_IFCHR", 020000},
            {"S_IFBLK", 060000},  {"S_IFIFO", 010000}, {"S_IFSOCK", 0140000}, {"S_ISUID", 04000},
            {"S_ISGID", 02000},   {"S_ISVTX", 01000}};
        static constexpr CallArg kMode = {"mode", Role::kMode,       Form::kPlain,
                                          0,      std::size(kTypes), kTypes};
        Scan mode(text.substr(at + (x ? 9 : 8)));
        uint64_t value = 0;
        if (flags(kMode, mode, value)) a.mode = static_cast<uint32_t>(value);
      }
      if (const size_t at = text.find(x ? "stx_size=" : "st_size="); at != std::string_view::npos) {
        Scan size(text.substr(at + (x ? 9 : 8)));
        if (size.number(number) && number >= 0) a.length = static_cast<uint64_t>(number);
      }
      if (S_ISREG(a.mode)) identity(text, x ? "stx_" : "st_", values);
      return true;
    }
    case Role::kRights: {  // descriptors that a message brings
      Scan control = s;
      if (s.peek() != '{') return true;
      // Before 4.11 it has no name, and stands behind its length.
      if (!find_member(control, "msg_control") &&
          (!find_member(control, "msg_controllen") || !control.skip_argument() ||
           !control.take(", ") || (control.peek() != '{' && control.peek() != '[')))
        return true;
      Scan end = control;
      Scan flags = s;
      if (!end.skip_argument() || !flags.skip_argument()) return true;
      flags.take(',');
      flags.blanks();
      if (has_flag(flags, "MSG_PEEK", MSG_PEEK)) a.flags |= MSG_PEEK;
      if (has_flag(flags, "MSG_CMSG_CLOEXEC", MSG_CMSG_CLOEXEC)) a.flags |= MSG_CMSG_CLOEXEC;
      const std::string_view text(control.p, static_cast<size_t>(end.p - control.p));
      const auto rights = [&](size_t from) {
        const size_t at = std::min(text.find("SCM_RIGHTS", from),
                                   text.find("cmsg_level=0x1, cmsg_type=0x1,", from));
        return at != text.npos ? text.find_first_of("[{", at) : at;  // before 4.21 {…}
      };
      for (size_t at = 0; (at = rights(at)) != text.npos;) {
        Scan inner(text.substr(++at));
        while (inner.number(number)) {
          values.push_back(static_cast<uint64_t>(number));
          if (inner.peek() == '<') (void)inner.skip_angle();
          inner.take("(deleted)");
          inner.take(',');
          inner.blanks();
        }
        if (inner.peek() != '.') continue;
        values.clear();  // cut by -s
        return true;
      }
      // Resolve knows it by that.
      if (Scan got = s; find_member(got, "msg_flags") && has_flag(got, "MSG_CTRUNC", MSG_CTRUNC) &&
                        !values.empty())
        values.push_back(FEIGN_NO_OFFSET);
      return true;
    }
    case Role::kFds: {
      Scan inner = s;  // the caller skips the array as a whole
      if (!inner.take('[')) return true;
      values.clear();
      for (int i = 0; i < 2; ++i) {
        inner.blanks();
        if (!inner.number(number)) {
          values.clear();
          return true;  // "[...]" under -s 0
        }
        values.push_back(static_cast<uint64_t>(number));
        if (inner.peek() == '<' && !inner.skip_angle())
          return wrong("a descriptor's annotation does not end");
        inner.take(',');
      }
      return true;
    }
  }
  return true;
}

// A struct's members, of which `first` is one and those behind it the others.
bool Arguments::members(const Call& call, const CallArg* first, unsigned& next, const Scan& s,
                        feign_activity& a, std::vector<uint64_t>& values, bool& is_cwd) {
  while (next < call.arg_count && call.args[next].form == Form::kMember) ++next;
  for (const CallArg* arg = first; arg != call.args + next; ++arg) {
    Scan member = s;
    // Before 4.11 a lock's members have no "l_" in front.
    const std::string_view called = arg->member;
    if (s.peek() == '{' ? !find_member(member, called) &&
                              !(called.starts_with("l_") && find_member(member, called.substr(2)))
                        : !called.empty())
      continue;
    if (!argument(*arg, member, a, values, is_cwd)) return false;
  }
  return true;
}

bool Arguments::wrong_argument(const CallArg& arg, unsigned number, const Scan& at) {
  const char* from = at.p;
  Scan shown = at;
  (void)shown.skip_argument();
  error_ = "argument " + std::to_string(number + 1) + " (" + arg.name + ") is \"" +
           std::string(from, std::min<size_t>(static_cast<size_t>(shown.p - from), 40)) +
           "\": " + error_;
  return false;
}

// A number that stands there as two words, and what is between them.
bool Arguments::words(const CallArg& arg, bool high_first, Scan& s, feign_activity& a) {
  int64_t first = 0, second = 0;
  if (!s.number(first) || !s.skip_argument() || !s.take(',')) return wrong("want two numbers");
  s.blanks();
  if (!s.number(second)) return wrong("want two numbers");
  if (high_first) std::swap(first, second);
  uint64_t whole = static_cast<uint64_t>(first);
  if (whole >> 32 == 0) whole |= static_cast<uint64_t>(second) << 32;  // else it is all of it
  (arg.role == Role::kLength ? a.length : a.offset) = whole;
  return true;
}

// All up to the closing bracket; `next`: how many of the call's there were. Of `pairs` positions
// each is two words.
bool Arguments::listed(const Call& call, Scan& s, feign_activity& a, std::vector<uint64_t>& values,
                       bool& is_cwd, unsigned& next, unsigned pairs) {
  const Scan start = s;
  bool closed = false;
  unsigned i = 0, wide = 0;
  for (; !closed; ++i) {
    s.blanks();
    s.skip_name();
    if (s.peek() == ')') {
      ++s.p;
      break;
    }
    // Before 4.10 quotes in an attribute's value stand there as they are; behind it are none.
    const bool is_value = i == 2 && s.peek() == '"' &&
                          (call.effect == Effect::kGetXattr || call.effect == Effect::kSetXattr);
    const CallArg* arg = next < call.arg_count ? &call.args[next++] : nullptr;
    if (arg != nullptr && arg->form == Form::kStruct) {
      if (!members(call, arg, next, s, a, values, is_cwd)) return false;
    } else if (arg != nullptr && arg->wide && wide++ < pairs) {
      // Where the result is behind a pointer, as _llseek's.
      const bool high_first = next < call.arg_count && call.args[next].role == Role::kResult;
      if (!words(*arg, high_first, s, a)) return wrong_argument(*arg, i, s);
    } else if (arg != nullptr) {
      if (!argument(*arg, s, a, values, is_cwd)) return wrong_argument(*arg, i, s);
      // A command of fcntl() that is not known is not that whose number is 0.
      if (call.effect == Effect::kFcntl && arg->role == Role::kFlags && !known_) a.flags = 1U << 31;
    }
    if (is_value)
      if (const size_t quote = s.rest().rfind('"'); quote != std::string_view::npos)
        s.p += quote + 1;
    if (!s.skip_argument()) return wrong(kNoEnd);
    closed = s.take(')');
    if (!closed) ++s.p;  // the comma
  }
  // With -e raw, and of calls that strace has no description of, they are as the kernel has them.
  const unsigned more = i - std::min<unsigned>(i, call.arg_count);
  if (pairs != 0 || more == 0 || more > wide) return true;
  s = start;
  next = 0;
  return listed(call, s, a, values, is_cwd, next, more);
}

// What stands behind the bracket. `short_of`: there were fewer arguments than the call has.
bool Arguments::result(const Call& call, Scan& s, feign_activity& a,
                       const std::vector<uint64_t>& values, bool short_of) {
  s.blanks();
  if (!s.take('=')) return wrong("there is no result: want \") = RESULT\"");
  s.blanks();
  if (s.take('?')) {
    a.marks |= FEIGN_NO_RESULT;
    return true;
  }
  // Of a thread that was ended in the call strace knows nothing, and shows a number below zero.
  constexpr std::string_view kNoError = "(errno 18446744073709";
  int64_t result = 0;
  if (!s.number(result)) return wrong("the result is no number");
  if (result == -1) {
    s.blanks();
    const char* start = s.p;
    while (is_name(s.peek())) ++s.p;
    const std::string_view name(start, static_cast<size_t>(s.p - start));
    const auto at = errors_.find(name);
    if (at != errors_.end()) {
      result = -at->second;
    } else if (!name.empty() && s.peek() == '#') {  // as dtruss and truss show them
      return wrong("the error is told by another system's number: want a trace of strace");
    } else if (!name.empty() || s.rest().starts_with(kNoError)) {
      a.marks |= FEIGN_NO_RESULT;
    }
  }
  const bool opens = call.effect == Effect::kOpen || call.effect == Effect::kCreat;
  // Strace before 4.14 shows no mode with O_TMPFILE: that of most who open such a file.
  if (opens && (a.flags & O_TMPFILE) == O_TMPFILE && short_of) a.mode = 0600;
  if ((opens || call.effect == Effect::kAccept) && s.peek() == '<') {  // what it is
    const char* start = s.p + 1;
    if (s.skip_angle()) {
      std::string what(start, static_cast<size_t>(s.p - start) - 1);
      if (s.rest().starts_with(kGone.substr(1))) what.append(kGone);  // as of descriptors
      (opens ? a.path2 : a.file) = hint(static_cast<int32_t>(result), what);
    }
  }
  if (result == 0 && true_result_ >= 0) result = true_result_;
  if (result == 0 && lost_result_ && a.flags == SEEK_SET) result = static_cast<int64_t>(a.offset);
  a.result = result;
  // A path that was there, and not shown, is not that of the directory which it began from.
  if (result >= 0) paths_lost_ += (lost_path_ && !(a.flags & AT_EMPTY_PATH)) || lost_second_;
  if (lost_path_ && !(a.flags & AT_EMPTY_PATH)) {
    a.handle = a.file = 0;
    a.marks &= ~FEIGN_TOLD;
  }
  if (Scan rest = s; ends_early(rest)) return wrong(kLostNewline);
  made_up_ = is_made_up(s.rest());
  if (call.effect == Effect::kRead || call.effect == Effect::kWrite ||
      call.effect == Effect::kPread || call.effect == Effect::kPwrite ||
      call.effect == Effect::kPread2 || call.effect == Effect::kPwrite2) {
    // A vector whose lengths were cut: as many bytes as were moved.
    if (a.length == 0 && values.empty() && result > 0) a.length = static_cast<uint64_t>(result);
  }
  return true;
}

bool Arguments::read(const Call& call, Scan& s, feign_activity& a, std::vector<uint64_t>& values) {
  values.clear();
  after_cwd_ = false;
  made_up_ = lost_path_ = lost_second_ = lost_result_ = false;
  said_cwd_ = said_second_ = 0;
  true_result_ = -1;
  microseconds_ = call.op == FEIGN_POSIX_UTIMES || call.op == FEIGN_POSIX_FUTIMESAT;
  bool is_cwd = false;
  unsigned next = 0;
  if (!listed(call, s, a, values, is_cwd, next)) return false;
  const bool two = call.effect == Effect::kLink || call.effect == Effect::kRename;
  if (says_second(call.effect)) a.mode = said_second_;
  if (a.path != 0 && a.file == 0 && (is_cwd || a.handle == 0)) {
    const auto relative = [&](uint32_t id) {
      size_t length = 0;
      const char* path = host_->text(host_, id, &length);
      return length != 0 && path[0] != '/';
    };
    after_cwd_ = relative(a.path) ||
                 (two && (a.handle2 == 0 || a.handle2 == FEIGN_CWD) && relative(a.path2));
  }
  return result(call, s, a, values, next < call.arg_count);
}

}  // namespace feign::strace
