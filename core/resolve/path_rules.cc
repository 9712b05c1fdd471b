// SPDX-License-Identifier: MIT
#include "resolve/path_rules.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/path.h"

namespace feign {

bool no_follow(const Call& call, const feign_activity& a) {
  switch (call.effect) {
    case Effect::kLink:
      return (a.flags & AT_SYMLINK_FOLLOW) == 0;
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
    case Effect::kExec:
      return call.nofollow || (a.flags & AT_SYMLINK_NOFOLLOW) != 0;
    case Effect::kOpen:
    case Effect::kFopen:
      return (a.flags & O_NOFOLLOW) != 0 || (a.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    default:
      return call.nofollow;
  }
}

bool leads_on(const feign_activity& a, Effect effect, std::string_view path) {
  switch (effect) {
    case Effect::kOpen:
      if (a.flags & O_CREAT) return false;
      break;
    case Effect::kStat:
    case Effect::kStatat:
    case Effect::kAccess:
    case Effect::kChmod:
    case Effect::kAttr:
    case Effect::kReadlink:
    case Effect::kGetXattr:
    case Effect::kSetXattr:
    case Effect::kRemoveXattr:
      break;
    default:
      return false;
  }
  return (a.marks & FEIGN_NOFOLLOW) && (path.ends_with('/') || path.ends_with("/."));
}

bool is_path(std::string_view said) {
  return said.starts_with('/') && said.find('<') == said.npos && !said.ends_with(kGone);
}

bool on_sockets(Effect effect) {
  return effect == Effect::kBind || effect == Effect::kSocketpair || effect == Effect::kConnect ||
         effect == Effect::kAccept || effect == Effect::kSend || effect == Effect::kReceive;
}

bool is_socket(std::string_view said) {
  const size_t end = said.find(":[");
  if (end == said.npos || end == 0) return false;
  return said.substr(0, end) == "socket" || (said[0] >= 'A' && said[0] <= 'Z');
}

bool ups_first(std::string_view path) {
  bool down = path.starts_with('/');
  for (std::string_view part; !(part = take_component(path)).empty();) {
    if (down && part == "..") return false;
    down = down || part != "..";
  }
  return true;
}

bool form_decides(const feign_activity& a, Effect effect, std::string_view path) {
  if (a.result >= 0) return false;
  const bool makes = effect == Effect::kMkdir || effect == Effect::kMknod ||
                     effect == Effect::kBind || effect == Effect::kSymlink ||
                     effect == Effect::kLink || effect == Effect::kRename ||
                     (effect == Effect::kOpen && (a.flags & O_CREAT));
  const bool at_end =
      path.ends_with('/') || path.ends_with("/.") || path.ends_with("..") || path == ".";
  const bool up = path.find("..") != std::string_view::npos || path.find("/.") != path.npos;
  const bool follows = (a.marks & FEIGN_NOFOLLOW) == 0, loops = a.result == -ELOOP;
  if (path == "/" || !(at_end || (up && (makes || a.result == -ENOTDIR || loops)))) return false;
  switch (-a.result) {
    case ENOENT:
    case ENOTDIR:
      return makes || at_end || a.result == -ENOTDIR;
    case EINVAL:
    case EBUSY:
    case EISDIR:
    case ENOTEMPTY:
      return true;
    case EEXIST:  // renameat2(…, "a/.", RENAME_NOREPLACE) has not looked for the other name yet
      while (path.ends_with('/')) path.remove_suffix(1);
      return effect == Effect::kRename &&
             (path == "." || path.ends_with("/.") || path == ".." || path.ends_with("/.."));
    case ELOOP:  // lstat("link/") goes on from a link that leads to itself; so does "link/../x"
      return follows ? up : at_end || (effect != Effect::kOpen && !ups_first(path));
    default:
      return false;
  }
}

bool looks_at_no_path(const feign_activity& a, Effect effect) {
  if (effect == Effect::kAttr)  // utimensat(2) that leaves both times as they are
    return a.result >= 0 && a.value_count == 4 && a.values[1] == UTIME_OMIT &&
           a.values[3] == UTIME_OMIT;
  if (effect == Effect::kSymlink) return a.result == -ENOENT && a.path2 == 0;  // to nothing
  if (effect == Effect::kGetXattr || effect == Effect::kSetXattr || effect == Effect::kRemoveXattr)
    return a.result == -ERANGE && a.path2 == 0;  // an attribute without a name
  return effect == Effect::kReadlink && a.result == -EINVAL && static_cast<int32_t>(a.length) <= 0;
}

bool tells_there(int64_t result) {
  switch (result) {
    case -EEXIST:  // of O_EXCL
    case -EISDIR:
    case -ENXIO:  // a FIFO that nobody reads, a socket, a device that is not there; ENODEV as well
    case -ENODEV:
    case -EBUSY:  // another has it
    case -ETXTBSY:
    case -EFBIG:  // too large for its caller, as EOVERFLOW
    case -EOVERFLOW:
      return true;
    default:
      return result >= 0;
  }
}

uint32_t components(std::string_view path) {
  if (path.starts_with('/')) return FEIGN_NAMED_WHOLE;
  uint32_t n = 0;
  while (!path.empty() && n < FEIGN_NAMED_WHOLE) {
    const std::string_view name = path.substr(0, path.find('/'));
    if (!name.empty() && name != "." && name != "..") ++n;
    path.remove_prefix(std::min(name.size() + 1, path.size()));
  }
  return n;
}

bool is_disk(std::string_view path) {
  if (!path.starts_with("/dev/")) return false;
  const std::string_view name = path.substr(5);
  for (const std::string_view disk : {"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "md",
                                      "dm-", "mapper/", "disk/", "nbd", "rbd", "ram", "zram"})
    if (name.starts_with(disk)) return !name.ends_with("control");  // mapper/control, loop-control
  return false;
}

}  // namespace feign
