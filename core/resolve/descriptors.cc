// SPDX-License-Identifier: MIT
// Descriptors and what they stand for: open file descriptions, sockets' connections, messages that
// bring descriptors.
#include <fcntl.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "base/path.h"
#include "resolve/path_rules.h"
#include "resolve/resolve.h"

namespace feign {

Resolve::Description* Resolve::describe(uint32_t marks, uint32_t path, uint32_t file,
                                        uint32_t flags) {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<Description>());
    free_.push_back(pool_.back().get());
  }
  Description* d = free_.back();
  free_.pop_back();
  *d = Description{++last_handle_, file, path, flags, 0, marks};
  return d;
}

void Resolve::release(Description* d, std::vector<uint64_t>* ended) {
  if (--d->refs != 0) return;
  if (d->fd >= 0) {
    // What a stream had when its process ended without a flush is lost.
    const uint64_t lost = ended != nullptr && d->parts ? std::min(d->held, d->offset) : 0;
    if (const auto at = left_.find(d->file); at != left_.end() && at->second.found == d)
      at->second = {nullptr, read_to_end(*d) ? 0 : d->offset - lost, at->second.appends, d->fd};
  }
  if (ended != nullptr && (!(d->marks & FEIGN_NOT_A_FILE) || d->file != 0))
    ended->push_back(d->handle);
  free_.push_back(d);
}

Resolve::Descriptor& Resolve::install(Thread& t, int32_t fd, Description* d, bool close_on_exec) {
  ++d->refs;
  if (guesses_makers_ && t.table->map.contains(fd)) threads_closed(t, fd);
  if (!gave_up_.empty() && (d->marks & FEIGN_INHERITED) == 0) given_up(t, fd);
  Descriptor& at = t.table->map[fd];
  if (at.description != nullptr) {
    if (at.description->refs == 1 && !(at.description->marks & FEIGN_NOT_A_FILE))
      t.table->unclosed.push_back(at.description->handle);
    const bool told = tells_ || at.description->said != 0 ||  // strace -y goes on to tell it
                      ((at.description->marks & FEIGN_INHERITED) && at.description->path != 0);
    const bool threads = t.table.use_count() > 1;
    if (!told && !at.unsure && threads)  // another one's close may come yet, or came too early
      ++t.table->lacks[fd];
    else if (!told && !at.unsure)
      says_no_close();
    release(at.description, nullptr);
  }
  at = {d, close_on_exec};
  return at;
}

void Resolve::says_no_close() {
  if (std::exchange(said_guess_, true)) return;
  log(FEIGN_LOG_INFO,
      tables_.notes.emplace_back(
          "the trace lacks calls that close descriptors: what dup and fork made of them is not "
          "known where it lacks these, too (strace: -y tells it, or -e "
          "trace=file,desc,process)"));
}

// A file, as the call at hand tells: of these, only the standard ones are in traces of whole runs.
bool Resolve::is_untold(const Description& d) {
  return (d.marks & FEIGN_INHERITED) && (d.marks & FEIGN_NOT_A_FILE) && d.path == 0 && d.file == 0;
}

void Resolve::says_untold(const Description& d, int32_t fd) {
  constexpr int32_t kStandard = 2;
  if ((d.fd >= 0 ? d.fd : fd) <= kStandard || std::exchange(said_untold_, true)) return;
  log(FEIGN_LOG_INFO,
      tables_.notes.emplace_back(
          "files are used by descriptors whose opening is not in the trace, as they were open "
          "before it began, or came from others (first " +
          std::to_string(fd) +
          "): which they are is not known, and such calls are skipped (strace: "
          "-y tells it)"));
}

// A stranger closes what it has not opened itself. Whoever has that number and opens a file by it
// is in one process with it.
void Resolve::gives_up(uint32_t stream, int32_t fd, Description& d) {
  if (!threads_[stream].stranger || ((d.marks & FEIGN_INHERITED) == 0 && d.refs == 1)) return;
  d.given_up = fd;
  const uint32_t handle = d.path != 0 || d.file != 0 ? d.handle : 0;
  const auto [at, first] = gave_up_.try_emplace(fd, GaveUp{stream, handle});
  if (first) return;
  const bool another = at->second.stream != stream && handle == 0;
  at->second = {another ? 0 : stream, handle};
}

void Resolve::given_up(Thread& t, int32_t fd) {
  const auto at = gave_up_.find(fd);
  if (!t.stranger || at == gave_up_.end()) return;
  const GaveUp by = at->second;
  gave_up_.erase(at);
  const auto mine = t.table->map.find(fd);
  if (by.stream == 0 || mine == t.table->map.end()) return;
  Description* const had = mine->second.description;
  const Thread& other = threads_[by.stream];
  if (other.ended || other.table == t.table || (by.handle != 0 && by.handle != had->handle)) return;
  const feign_stream_info my = tables_.streams.info(t.now), its = tables_.streams.info(other.now);
  if (its.rank != my.rank || its.host != my.host) return;
  t.table->map.erase(mine);
  if (had->refs == 1 && !(had->marks & FEIGN_NOT_A_FILE)) t.table->unclosed.push_back(had->handle);
  release(had, nullptr);
  share(t.table, other.table);
}

// The handle under whose stream that number was closed, if none has had it since; else 0.
uint32_t Resolve::stream_before(Thread& t, int32_t fd) {
  if (t.table->streams.empty()) return 0;
  const auto at = t.table->streams.find(fd);
  if (at == t.table->streams.end()) return 0;
  const uint32_t handle = at->second;
  t.table->streams.erase(at);
  return handle;
}

// A call made one more descriptor, which a stream may have been left on.
void Resolve::duplicated(feign_activity& a, Thread& t, int32_t fd, Description* d,
                         bool close_on_exec) {
  install(t, fd, d, close_on_exec);
  if (const uint32_t stream = stream_before(t, fd); stream != 0) {
    a.handle2 = stream;
    a.marks |= FEIGN_LAST;
  }
}

// Descriptors that a message brings to another process stand for the same open files there.
void Resolve::send(const feign_activity& a, Thread& t) {
  constexpr size_t kMost = 64;  // whoever gets them may not be traced
  Sent& s = sent_.emplace_back();
  s.file = a.file;
  s.by = a.handle;
  for (uint32_t i = 0; i < a.value_count; ++i) {
    if (a.values[i] == FEIGN_NO_OFFSET) continue;  // said of the message when it came
    const auto at = t.table->map.find(static_cast<int32_t>(a.values[i]));
    Description* const d = at != t.table->map.end() ? at->second.description : nullptr;
    if (d != nullptr) ++d->refs;
    s.descriptions.push_back(d);
  }
  if (sent_.size() <= kMost) return;
  for (Description* d : sent_.front().descriptions)
    if (d != nullptr) release(d, nullptr);
  sent_.pop_front();
}

// Which message it is, a pair of sockets tells: the other end was given it. Else it is the first
// that has as many. What was sent to somebody who was not traced is not what came from another one.
// FEIGN_NO_OFFSET at the end stands for those that there was no room for. What was only looked at
// (MSG_PEEK) is brought once more.
void Resolve::receive(const feign_activity& a, Thread& t) {
  const bool cut = a.values[a.value_count - 1] == FEIGN_NO_OFFSET;
  const size_t came = a.value_count - (cut ? 1 : 0);
  auto best = sent_.end();
  for (auto s = sent_.begin(); s != sent_.end(); ++s) {
    const bool known = a.file != 0 && s->file != 0, pair = known && s->file == a.file;
    const size_t sent = s->descriptions.size();
    if ((cut ? sent <= came : sent != came) || (known && !pair) ||
        (s->by != 0 && s->by == a.handle))
      continue;
    if (pair || best == sent_.end()) best = s;
    if (pair) break;
  }
  if (best == sent_.end()) return;
  const bool stays = (a.flags & MSG_PEEK) != 0;
  for (size_t i = 0; i < best->descriptions.size(); ++i) {
    Description* const d = best->descriptions[i];
    if (d == nullptr) continue;
    if (i < came) {
      const auto fd = static_cast<int32_t>(a.values[i]);
      install(t, fd, d, (a.flags & MSG_CMSG_CLOEXEC) != 0).got = {t.now, a.start_ns};
    }
    if (!stays) release(d, nullptr);
  }
  if (!stays) sent_.erase(best);
}

// The description behind a recorded descriptor. One whose opening was not seen is described by what
// the tracer says it is (`hint`), if it says anything.
Resolve::Description* Resolve::find(Thread& t, uint32_t handle, uint32_t hint) {
  const int32_t fd = FEIGN_FD_OF(handle);
  if (handle == 0 || handle == FEIGN_CWD || fd < 0) return nullptr;
  const auto at = t.table->map.find(fd);
  if (at != t.table->map.end()) {
    Description* const d = at->second.description;
    if (hint == 0 && may_be(*d, t)) {
      if (on_file_ && is_untold(*d)) says_untold(*d, fd);
      return d;
    }
    if (hint == 0) {
      t.table->map.erase(at);
      release(d, nullptr);
      return found_open(t, fd, hint);
    }
    if (d->anew && is_told(*d, hint)) return d;
    if (reads_on_ && read_to_end(*d)) return found_open(t, fd, hint);
    if (d->file == 0 && (d->marks & FEIGN_NOT_A_FILE)) connected(*d, tables_.strings.text(hint));
    if (!told_ || d->path == hint || d->said == hint || !is_another(*d, hint)) return d;
  }
  if (!found_open_) return nullptr;  // the kernel said that it is none
  return found_open(t, fd, hint);
}

// What a call has opened that does not name it: whether the tracer tells that it is a file.
bool Resolve::is_told(Description& d, uint32_t hint) {
  feign_activity device{};
  const bool gone = had_name(hint) != 0;
  if (!names_storage(device, hint)) return false;
  d.anew = false;
  d.gone = gone;
  d.marks = FEIGN_INHERITED | device.marks;
  d.file = names_.found(hint, Namespace::Type::kUnknown);
  d.path = hint;
  return true;
}

// Whether what the tracer says of a descriptor tells that it is not what it was known to be: a
// close, dup or the like is missing in the trace.
bool Resolve::is_another(const Description& d, uint32_t hint) {
  const bool is_file = (d.marks & FEIGN_NOT_A_FILE) == 0;
  if (is_file && d.said == 0 && !(d.marks & FEIGN_INHERITED)) return false;
  feign_activity device{};
  if (!tables_.strings.text(hint).starts_with('/') || no_storage(device, hint)) return is_file;
  if (d.path != 0 && names_.canonical(d.path, true) == names_.canonical(hint, true)) return false;
  const uint32_t file = names_.at(names_.canonical(hint, true));
  if (file != 0) return file != d.file;
  const bool opened = (d.marks & FEIGN_INHERITED) == 0;
  return !opens_seen_ || (opened && !opened_for_it(d));  // a new name, unless it was moved unseen
}

// Where no opens are traced: whoever reads on has opened it again.
bool Resolve::read_to_end(const Description& d) {
  return !opens_seen_ && d.met_end && (d.marks & FEIGN_INHERITED) && d.file != 0 &&
         names_.file(d.file).size <= d.offset;
}

// The same open file of somebody whom nobody was seen to make either: one has it from the other, or
// both are threads of one process, as they are if it was opened when this one had begun.
Resolve::Description* Resolve::found_elsewhere(Thread& t, int32_t fd, uint32_t told, uint32_t hint,
                                               uint32_t had) {
  if (!is_path(tables_.strings.text(hint))) return nullptr;
  const feign_stream_info mine = tables_.streams.info(t.now);
  for (const uint32_t stream : strangers_) {
    const Thread& other = threads_[stream];
    if (!other.stranger || other.ended || other.table == t.table) continue;
    const feign_stream_info its = tables_.streams.info(other.now);
    if (its.rank != mine.rank || its.host != mine.host) continue;
    const auto at = other.table->map.find(fd);
    if (at == other.table->map.end()) continue;
    Description* const d = at->second.description;
    if ((d->marks & FEIGN_NOT_A_FILE) || (reads_on_ && read_to_end(*d))) continue;
    const bool lost_it = had != 0 && names_.file(d->file).gone;
    const uint32_t name = lost_it && !d->gone ? had : hint;
    // What never had a name (O_TMPFILE) is said to be deleted when it is opened.
    if (d->path != name && d->said != name && d->said != told) continue;
    if (d->said != 0 && d->handle > t.first_handle)
      share(other.table, t.table);
    else
      install(t, fd, d, false);
    return d;
  }
  return nullptr;
}

// All who have the table `its` have `table` from now on: of two open files, the one that was opened
// last is known to be there. What one who is in the process, perhaps, has closed is not.
void Resolve::share(const std::shared_ptr<Table> table, const std::shared_ptr<Table> its) {
  for (const auto& [fd, mine] : its->map) {
    if (mine.description->given_up == fd && !table->map.contains(fd)) {
      release(mine.description, nullptr);
      continue;
    }
    Descriptor& at = table->map[fd];
    Description* gone = mine.description;
    if (at.description == nullptr || at.description->handle < gone->handle)
      gone = std::exchange(at, mine).description;
    if (gone != nullptr) release(gone, nullptr);
  }
  table->unclosed.insert(table->unclosed.end(), its->unclosed.begin(), its->unclosed.end());
  for (Thread& each : threads_)
    if (each.table == its) each.table = table;
  // Record locks are a process's, which mostly has the number of its first thread. (What else it
  // has in common, exit_group's end, is not guessed.)
  int64_t process = INT64_MAX;
  for (const Thread& each : threads_)
    if (each.table == table) process = std::min(process, tables_.streams.info(each.now).process);
  for (const Thread& each : threads_)
    if (each.table == table) tables_.streams.set_process(each.now, process);
}

// The name that a file had which is gone (0: it is not), as the tracer tells: it is where no trace
// looks for it then.
uint32_t Resolve::had_name(uint32_t& hint) {
  feign_activity device{};
  if (!is_gone(tables_.strings.text(hint)) || !names_storage(device, hint)) return 0;
  std::string path(tables_.strings.text(hint));
  path.resize(path.size() - kGone.size());
  hint = tables_.strings.intern("/.deleted" + path);
  return tables_.strings.intern(path);
}

Resolve::Description* Resolve::found_open(Thread& t, int32_t fd, uint32_t hint) {
  if (t.table.use_count() > 1 || !t.table->lacks.empty()) --t.table->lacks[fd];
  const uint32_t told = hint;
  const uint32_t had = had_name(hint);
  if (t.stranger)
    if (Description* const d = found_elsewhere(t, fd, told, hint, had); d != nullptr) return d;
  if (guesses_makers_)
    if (Description* const d = threads_have(t, fd); d != nullptr) return d;
  constexpr int32_t kStandard = 2;  // processes inherit them from each other
  const std::string_view what = tables_.strings.text(hint);
  feign_activity device{};
  const bool file = names_storage(device, hint);
  untold_sockets_ |= fd > kStandard && is_socket(what);
  uint32_t identity = 0;
  if (file) {
    identity = names_.found(hint, Namespace::Type::kUnknown);
  } else if (what.starts_with("pipe:[")) {  // the same number is the same pipe
    uint32_t& known = pipes_[hint];
    if (known == 0) known = names_.nameless();
    identity = known;
  }
  Left* const left = file && identity != 0 ? &left_[identity] : nullptr;
  // One behind standard output and standard error: "> log 2>&1".
  const int32_t before = left != nullptr && left->found != nullptr ? left->found->fd : -1;
  if (before >= 0 && before <= kStandard && fd <= kStandard && (before == fd || before * fd != 0) &&
      !(reads_on_ && read_to_end(*left->found))) {
    install(t, fd, left->found, false);
    return left->found;
  }
  Description* d =
      describe(FEIGN_INHERITED | device.marks | (file ? 0u : uint32_t{FEIGN_NOT_A_FILE}),
               what.empty() || what[0] != '/' ? 0 : hint, identity, 0);
  d->gone = had != 0;
  d->fd = fd;
  if (left != nullptr) {
    d->flags = left->appends ? O_APPEND : 0;
    // By another number it was opened again, but for standard output and standard error.
    const bool outputs = left->fd * fd != 0 && left->fd <= kStandard && fd <= kStandard;
    const bool same = left->fd < 0 || left->fd == fd || outputs;
    d->offset = same ? left->offset : 0;
    left->found = d;
  }
  install(t, fd, d, false);
  if (identity == 0) connected(*d, what);
  if (on_file_ && is_untold(*d)) says_untold(*d, fd);
  return d;
}

// Which connection a socket is an end of, by what the tracer says (strace -yy, our own capture):
// "TCP:[10.0.0.1:40000->10.0.0.2:80]", "TCPv6:[[::1]:40000->[::1]:80]", or, by the numbers of both
// ends' sockets, "UNIX-STREAM:[12->34,"/run/name"]"; of one that nobody accepted yet, the first of
// them alone.
void Resolve::connected(Description& d, std::string_view what) {
  constexpr size_t kMostEnds = size_t{1} << 17;  // then all are forgotten
  const bool internet = what.starts_with("TCP");
  if (!internet && !what.starts_with("UNIX-STREAM:") && !what.starts_with("UNIX-SEQPACKET:"))
    return;
  const size_t begin = what.find(":["), end = what.rfind(']');
  if (begin == what.npos || end == what.npos || end <= begin + 2) return;
  what = what.substr(begin + 2, end - begin - 2);
  if (!internet) what = what.substr(0, what.find(','));
  const size_t arrow = what.find("->");
  if (internet && arrow == what.npos) return;  // it listens, or is not connected yet
  const auto name = [](std::string_view text) {
    constexpr std::string_view kMapped = "[::ffff:";  // the other end may be an IPv4 socket
    if (text.starts_with(kMapped) && text.find('.') != text.npos) {
      std::string plain(text.substr(kMapped.size()));
      if (const size_t bracket = plain.find(']'); bracket != plain.npos) plain.erase(bracket, 1);
      return plain;
    }
    return std::string(text);
  };
  std::string own = name(what.substr(0, arrow)), other;
  if (arrow != what.npos) {
    other = name(what.substr(arrow + 2));
    if (internet) {  // the same address may be an end of many
      const std::string both = own + '>' + other;
      other = other + '>' + own;
      own = both;
    }
  }
  if (ends_.size() > kMostEnds) ends_.clear();
  End& mine = ends_[own];
  if (mine.identity == 0 || (internet && mine.taken)) {  // new, or the addresses came again
    const auto theirs = internet || other.empty() ? ends_.end() : ends_.find(other);
    mine.identity = theirs != ends_.end() ? theirs->second.identity : names_.nameless();
    if (!other.empty() && theirs == ends_.end()) ends_[other] = {mine.identity, false};
  }
  mine.taken = true;
  d.file = mine.identity;
  d.marks |= FEIGN_BOTH_WAYS;
}

void Resolve::fill(feign_activity& a, const Description* d) {
  a.handle = 0;
  a.file = 0;
  if (d == nullptr) {
    if (found_open_) a.marks |= FEIGN_NOT_A_FILE;
    return;
  }
  a.handle = d->handle;
  a.file = d->file;
  a.path = d->path;
  a.marks |= d->marks;
}

std::shared_ptr<Resolve::Table> Resolve::copy_of(const Table& table) {
  auto own = std::make_shared<Table>();
  own->map = table.map;
  for (auto& [fd, d] : own->map) ++d.description->refs;
  return own;
}

void Resolve::forked(const feign_activity& fork, Table& table, const std::shared_ptr<Table>& copy) {
  std::erase_if(table.copies, [&](const Copy& one) { return one.until <= fork.start_ns; });
  table.copies.push_back({copy, fork.start_ns + fork.duration_ns});
}

// A fork counts from its start. What another thread closes until it is over may be gone before the
// kernel copies the table, or after.
void Resolve::closed_meanwhile(const feign_activity& a, const Table& table, int32_t fd,
                               const Description* d) {
  for (const Copy& copy : table.copies) {
    const auto its = a.start_ns < copy.until ? copy.table.lock() : nullptr;
    if (its == nullptr) continue;
    if (const auto at = its->map.find(fd); at != its->map.end() && at->second.description == d)
      at->second.unsure = true;
  }
}

void Resolve::close_all(Table& table, bool only_on_exec, std::vector<uint64_t>* ended) {
  for (auto at = table.map.begin(); at != table.map.end();) {
    if (only_on_exec && !at->second.close_on_exec) {
      at->second.unsure |= (at->second.description->marks & FEIGN_INHERITED) != 0;
      ++at;
      continue;
    }
    release(at->second.description, ended);
    at = table.map.erase(at);
  }
  for (const auto& [fd, lacks] : std::exchange(table.lacks, {}))
    if (lacks > 0) says_no_close();
  ended->insert(ended->end(), table.unclosed.begin(), table.unclosed.end());
  table.unclosed.clear();
  table.streams.clear();
}

}  // namespace feign
