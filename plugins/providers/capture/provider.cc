// SPDX-License-Identifier: MIT
// Provider capture: reads what the capture library left in a raw folder (capture/format.h).
//
// Each lane is in the order in which its calls ended (lane.cc); lanes are merged by when their
// calls took effect; of calls on one name that overlap, as their results tell (overlap.h).
#include "providers/capture/provider.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>

#include "capture/hook_format.h"
#include "layers/mpiio_ops.h"
#include "layers/posix_ops.h"
#include "record/gaps.h"
#include "record/hook_image.h"
#include "record/program.h"

namespace feign::capture {

uint32_t Provider::op(uint32_t code) const {
  const uint32_t layer = code >> 12, number = code & 0xFFF;
  return number != 0 && number <= ops_[layer] ? firsts_[layer] + number - 1 : 0;
}

// The trace's number of a handle of a third party's layer. A child goes on with what its parent
// had.
uint32_t Provider::handle(Process& process, uint32_t number, bool made) {
  if (number == 0) return 0;
  uint32_t& mine = process.handles[number];
  if (mine == 0 && !made) {
    const Process* from = process.made_by;
    for (int depth = 0; from != nullptr && mine == 0 && depth < 64; from = from->made_by, ++depth)
      if (const auto at = from->handles.find(number); at != from->handles.end()) mine = at->second;
  }
  if (mine == 0 || made) mine = ++last_handle_;
  return mine;
}

// A handle is of the process that made it, in the trace it is of them all; and a call on a handle
// is one on the path that it was made from.
void Provider::third(Process& process, feign_activity& a, const feign_op_info& info) {
  bool has_path = false, makes2 = false, has_offset = false;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    has_path |= info.args[i].slot == FEIGN_SLOT_PATH;
    has_offset |= info.args[i].slot == FEIGN_SLOT_OFFSET;
    makes2 |= info.args[i].slot == FEIGN_SLOT_HANDLE2;
  }
  const bool opens = info.kind == FEIGN_KIND_OPEN;
  // Where in the file, its own calls know.
  if (!has_offset && (info.kind == FEIGN_KIND_READ || info.kind == FEIGN_KIND_WRITE))
    a.offset = FEIGN_NO_OFFSET;
  const uint32_t own = a.handle;
  a.handle = handle(process, own, opens && !makes2);
  a.handle2 = handle(process, a.handle2, opens && makes2);
  if (const uint32_t fresh = makes2 ? a.handle2 : a.handle; opens && fresh != 0 && a.path != 0)
    paths_[fresh] = a.path;
  if (!has_path && a.handle != 0)
    if (const auto at = paths_.find(a.handle); at != paths_.end()) a.path = at->second;
  if (info.kind == FEIGN_KIND_CLOSE && a.result >= 0) paths_.erase(a.handle);
}

uint32_t Provider::hint(Process& process, uint32_t handle, int depth) {
  if (const auto at = process.descriptors.find(handle); at != process.descriptors.end())
    return at->second;
  // The program before this one in the process had said so, or else the process that made it.
  if (depth > 64) return 0;
  if (auto before = processes_.find(process.key); before != processes_.begin())
    if (--before; before->first.first == process.pid)
      return hint(before->second, handle, depth + 1);
  const auto parent = by_pid_.find(process.parent);
  if (parent == by_pid_.end() || parent->second == &process) return 0;
  return hint(*parent->second, handle, depth + 1);
}

// What the process had when it was met, for calls on what nobody was seen to open.
void Provider::hints(Process& process, feign_activity& a) {
  if (a.file != 0) return;
  if (a.path != 0 && (a.handle == 0 || a.handle == FEIGN_CWD)) {
    size_t length = 0;
    const char* path = host_->text(host_, a.path, &length);
    if (length == 0 || path[0] == '/') return;
    const Process* from = &process;  // or whoever forked it, if nobody moved since
    for (int i = 0; i < 64 && from->cwd == 0 && from->made_by != nullptr; ++i) from = from->made_by;
    a.file = from->cwd;
  } else if (a.handle != 0 && a.handle != FEIGN_CWD) {
    a.file = hint(process, a.handle);
  }
}

// The program that the process goes on as, after an exec at that moment; null: nothing of it was
// recorded.
Process* Provider::started(const Process& before, Pid pid, uint64_t moment) {
  const auto [from, to] = starts_.equal_range(pid);
  uint64_t first = UINT64_MAX;
  for (auto s = from; s != to; ++s)
    if (before.host->to_main(s->second) >= moment) first = std::min(first, s->second);
  const auto at = processes_.find({pid, first});
  return at != processes_.end() ? &at->second : nullptr;
}

// Whether the thread has descriptors, or a directory, for itself from there on.
bool Provider::goes_apart(Effect effect, const feign_activity& a) {
  if (a.result < 0) return false;
  if (effect == Effect::kCloseRange) return (a.flags & CLOSE_RANGE_UNSHARE) != 0;
  return effect == Effect::kUnshare &&
         (a.flags & (CLONE_FILES | CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER)) != 0;
}

// A thread that calls exec goes on under its process's number: where not all was the same, with
// what it had itself. Its stream is that of the first thread from there on, and the other way
// round.
void Provider::takes_over(const Lane& lane) {
  const uint32_t own = lane.stream_of(static_cast<int32_t>(lane.pid()), lane.thread());
  const uint32_t first = lane.first_stream();
  if (own == first) return;
  const uint32_t was = goes_on_as(own);
  streams_[own] = goes_on_as(first);
  streams_[first] = was;
}

uint32_t Provider::goes_on_as(uint32_t stream) const {
  const auto at = streams_.find(stream);
  return at != streams_.end() ? at->second : stream;
}

// When the calls of its process's other threads do, if it is about to end them. (A vfork's child
// has none.)
uint64_t Provider::others_end(const Lane& lane) const {
  const uint32_t number = lane.front().code & 0xFFF;
  const ProcessKey& key = lane.process().key;
  uint64_t end = 0;
  if (lane.pid() != key.first || number >= posix_calls().size() ||
      posix_calls()[number].effect == Effect::kExit)
    return end;
  for (auto at = lanes_.lower_bound({key, 0}); at != lanes_.end() && at->first.first == key; ++at)
    if (at->second.get() != &lane && at->second->pid() == key.first)
      end = std::max(end, at->second->ends());
  return end;
}

// … of that process, or one that it made, on the same host.
int32_t Provider::rank_of(const Process& of, int32_t pid) const {
  const Pid whole_pid = pid_on(static_cast<size_t>(of.pid >> 32), pid);
  const auto at = whole_pid == of.pid ? by_pid_.end() : by_pid_.find(whole_pid);
  return at == by_pid_.end() || at->second->rank < 0 ? of.rank : at->second->rank;
}

uint32_t Provider::stream_of(const Process& of, int32_t process, int32_t thread) const {
  feign_stream_info info{};
  info.struct_size = sizeof info;
  info.host = of.host->name;
  info.rank = rank_of(of, process);
  info.process = process;
  info.thread = thread;
  return host_->stream(host_, &info);
}

uint32_t Provider::where(Process& process, int depth) {
  if (!process.where)
    process.where = process.cwd == 0 && process.made_by != nullptr && depth < 64
                        ? where(*process.made_by, depth + 1)
                        : process.cwd;
  return *process.where;
}

// What the process has there.
Descriptor& Provider::descriptor(Process& process, uint32_t handle, int depth) {
  if (const auto at = process.files.find(handle); at != process.files.end()) return at->second;
  constexpr int kDeepest = 64;
  Descriptor d;
  auto before = processes_.find(process.key);
  if (depth > kDeepest)
    ;
  else if (before != processes_.begin() && (--before)->first.first == process.pid)
    d = descriptor(before->second, handle, depth + 1);
  else if (process.made_by != nullptr)
    d = descriptor(*process.made_by, handle, depth + 1);
  return process.files[handle] = d;
}

// The file that a call opens, by its name from "/" on; 0: not known.
uint32_t Provider::opened_by(Process& process, const feign_activity& a) {
  const bool from_cwd = a.handle == 0 || a.handle == FEIGN_CWD;
  return there_.whole(from_cwd ? where(process) : file_of(process, a.handle), a.path, host_);
}

// What its next call tells besides names.
void Provider::shows(Lane& lane, const Call& call) {
  const feign_activity& a = lane.front().a;
  const auto known = [&](uint32_t handle) {
    Descriptor d = descriptor(lane.process(), handle);
    d.last = d.open.use_count() <= 2;  // there, and here
    return d;
  };
  Descriptor of;
  switch (call.effect) {
    case Effect::kOpen:
    case Effect::kCreat:
      if (a.result < 0) return;
      lane.opened.file = opened_by(lane.process(), a);
      lane.opened.open = std::make_shared<Description>(Description{++opens_, a.flags});
      of = lane.opened;
      break;
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kPread2:
    case Effect::kPwrite2:
    case Effect::kCopy:
    case Effect::kSeek:
    case Effect::kFlock:
    case Effect::kFcntl:
    case Effect::kFtruncate:
    case Effect::kFstat:
    case Effect::kStatat:  // as libc's fstat is
    case Effect::kClose:
      if (call.effect == Effect::kStatat && a.path != 0) return;
      of = known(a.handle);
      if (a.file != 0) of.file = a.file;
      break;
    case Effect::kDup2:
      if (const uint32_t closed = closed_by(call.effect, a); closed != 0)
        lane.shown.lock = lock_at_close(known(closed), static_cast<uint64_t>(lane.pid()), closed);
      return;
    case Effect::kExitGroup:
      lane.shown.lock = records_of(static_cast<uint64_t>(lane.pid()));
      return;
    default:
      return;
  }
  lane.shown =
      shown_by(call.effect, a, lane.front().values, of, static_cast<uint64_t>(lane.pid()), host_);
}

// Who lists a directory, or does so no longer; 0: its next call is another one.
uint64_t Provider::reader(Lane& lane) {
  const Effect effect = lane.call()->effect;
  if (effect != Effect::kList && effect != Effect::kSeek && effect != Effect::kClose) return 0;
  const uint32_t handle = lane.front().a.handle;
  return reader_of(descriptor(lane.process(), handle), static_cast<uint64_t>(lane.pid()), handle);
}

void Provider::in_line(Lane* lane) {
  const Call* const call = lanes_.size() > 1 ? lane->call() : nullptr;
  lane->shown = {};
  lane->opened = {};
  if (call != nullptr) shows(*lane, *call);
  lane->claims = {};
  if (call != nullptr) {
    feign_activity a = lane->front().a;
    const bool below = a.handle != 0 && a.handle != FEIGN_CWD && a.path != 0;
    if (a.file == 0 && (below || call->effect == Effect::kList))
      a.file = file_of(lane->process(), a.handle);
    lane->claims = claims(call->effect, a, host_);
    // Of what is read, descriptors tell within a process only.
    if (uint32_t& name = lane->claims[0].name; name >> 31 != 0)
      name = UINT32_C(1) << 31 | static_cast<uint32_t>(lane->pid() * 4099 + name);
    else
      there_.below(where(lane->process()), a.file, reader(*lane), call->effect, lane->claims, a,
                   host_);
  }
  heap_.push_back({lane->when(), lane, lane->about()});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// Whether late opened what early removes, which its claims do not tell: the thread does not find
// the name any more when it asks next, and nobody removes it once more before that.
bool Provider::loses_to(Lane& late, const Lane& early) {
  const auto removes = [](const Claim& c) {
    return c.before == There::kYes && c.after == There::kNo;
  };
  const auto removes_it = [&](const Lane& lane, const Claim& it) {
    return std::any_of(lane.claims.begin(), lane.claims.end(),
                       [&](const Claim& c) { return c.same(it) && removes(c); });
  };
  for (const Claim& it : late.claims) {
    if (it.before != There::kUnknown || it.after != There::kYes || !removes_it(early, it)) continue;
    const auto [missed, asked] = late.next_on(it);
    if (missed.name == 0 || missed.before != There::kNo) continue;
    return std::none_of(heap_.begin(), heap_.end(), [&, asked = asked](const auto& other) {
      Lane& lane = *other.lane;
      if (&lane == &late) return false;
      if (&lane != &early && removes_it(lane, it)) return lane.front().end < asked;
      const auto [next, end] = lane.next_on(it);
      return removes(next) && end < asked;
    });
  }
  return false;
}

// Whether the thread of early finds a name next as late left it: of several that may have been made
// before a listing was taken, it goes on with those that were in it.
bool Provider::found_next(Lane& early, const Lane& late) {
  return std::any_of(late.claims.begin(), late.claims.begin() + kNames, [&](const Claim& c) {
    return c.name != 0 && c.after != There::kUnknown && c.before != c.after &&
           early.next_on(c).first.before == c.after;
  });
}

// Takes whose call is next out of the heap; null: nobody's.
Lane* Provider::first() {
  for (; !later_.empty() && (heap_.empty() || later_.back()->front().start <= heap_.front().when);
       later_.pop_back()) {
    going_[later_.back()->pid()].push_back(later_.back()->front().a.stream);
    in_line(later_.back());
  }
  if (heap_.empty()) return nullptr;
  const uint64_t by = heap_[0].lane->front().end;
  // Very many may wait for long, in calls on what this one has nothing to do with.
  const auto may_be_first = [&](size_t i, size_t before) {
    return (heap_[i].about & heap_[before].about) != 0 && heap_[i].lane->front().start <= by &&
           heap_[i].lane->shares(*heap_[before].lane);
  };
  const auto claims_of = [&](size_t i, size_t before) {
    return i == before || may_be_first(i, before) ? &heap_[i].lane->claims : nullptr;
  };
  const auto overtakes = [&](size_t late, size_t early, Overtakes by_claims) {
    if (by_claims == Overtakes::kNo && loses_to(*heap_[late].lane, *heap_[early].lane))
      by_claims = Overtakes::kYes;
    const Overtakes told =
        shared_.overtakes(heap_[late].lane->shown, heap_[early].lane->shown, by_claims);
    return told == Overtakes::kYes && found_next(*heap_[early].lane, *heap_[late].lane)
               ? Overtakes::kSurely
               : told;
  };
  const size_t at = heap_[0].about == 0
                        ? 0
                        : first_of(0, heap_.size(), there_, claims_of, overtakes,
                                   [&](size_t i) { return heap_[i].lane->front().end; });
  Lane* const lane = heap_[at].lane;
  if (const Call* const call = lane->call(); call != nullptr) {
    there_.note(call->effect, lane->claims, lane->front().a, host_);
    shared_.note(lane->shown);
    Process& process = lane->process();
    if (const Left left = left_by(call->effect, lane->front().a);
        lanes_.size() > 1 && left.handle != 0)
      process.files[left.handle] = left.what == Left::kOwn
                                       ? descriptor(process, lane->front().a.handle)
                                       : std::exchange(lane->opened, {});
    const feign_activity& a = lane->front().a;
    const uint32_t folder = call->effect == Effect::kFchdir ? file_of(process, a.handle) : 0;
    process.where = there_.moves(where(process), folder, call->effect, a, host_);
  }
  if (at == 0) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  } else {
    heap_[at] = heap_.back();
    heap_.pop_back();
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  return lane;
}

void Provider::was_started(Process& process, const feign_activity& a, bool recorded) {
  const uint32_t from =
      a.handle == 0 || a.handle == FEIGN_CWD ? where(process) : file_of(process, a.handle);
  uint32_t path = there_.whole(from, a.path, host_);
  if (path == 0) path = a.path != 0 ? a.path : from;  // from: fexecve(3)
  Started& program = programs_[path != 0 ? host_->text(host_, path, nullptr) : "a program"];
  ++program.count;
  program.unseen += recorded ? 0 : 1;
  program.stream = a.stream;
}

// What the recording counted; of programs that were started, those that no library could be put
// into, and those that make system calls by themselves: their files tell, if they are still there.
void Provider::tell_what_is_missing() {
  for (const Host& host : hosts_)
    for (const Gap& gap : gaps_of(host.control))
      host_->log(host_, gap.asked_for ? FEIGN_LOG_INFO : FEIGN_LOG_WARN,
                 (hosts_.size() == 1 ? gap.text : std::string(host.control.host) + ": " + gap.text)
                     .c_str());
  constexpr size_t kTold = 10;
  feign_hooks hooks{};
  if (const int fd = ::open(options_.file[0], O_RDONLY | O_CLOEXEC); fd >= 0) {
    if (pread(fd, &hooks, sizeof hooks, FEIGN_CAPTURE_UNIT) != sizeof hooks ||
        hooks.magic != FEIGN_HOOK_MAGIC)
      hooks.count = 0;
    close(fd);
  }
  const auto hook_of = [&](const std::vector<uint8_t>& id) {
    const auto end = std::begin(hooks.all) + std::min<uint64_t>(hooks.count, FEIGN_HOOK_MOST);
    const auto at = std::find_if(std::begin(hooks.all), end, [&](const feign_hook_head& h) {
      return !id.empty() && h.id_size == id.size() && memcmp(h.id, id.data(), id.size()) == 0;
    });
    return at != end ? at : nullptr;
  };
  const bool full = std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) {
    return host.control.dropped != 0 && host.control.max_bytes != 0;
  });
  size_t told = 0;
  for (const auto& [path, program] : programs_) {
    std::string what;
    uint64_t count = program.unseen;
    if (count != 0) {
      const std::string why = why_not_recorded(path);
      what =
          why.starts_with(path + " ") ? "not in the trace: " : "not in the trace: " + path + ": ";
      if (why.empty() && full) what += "there was no room (--max-size), or ";
      what += !why.empty() ? why
                           : "it ended at once, ran as another user, in another root or where it "
                             "may not write into the recording, is in another recording, or the "
                             "system let no library into it";
    } else if (const OwnCalls own = own_system_calls(path); own.sites != 0) {
      const feign_hook_head* const hook = hook_of(own.id);
      if (hook != nullptr && hook->hooked == hook->sites) continue;
      count = program.count;
      what = "not in the trace: ";
      if (hook != nullptr)
        what +=
            std::to_string(hook->sites - hook->hooked) + " of " + std::to_string(hook->sites) + " ";
      what += "system calls that " + path + " makes by itself, if any, and not through libc: ";
      if (hook != nullptr)
        what += "no room for a jump there: ";
      else if (!own.go && !own.id.empty())
        what += "name it in the command (feign record -- PROGRAM …), or ";
      what += "--tracer strace";
    }
    if (count == 0) continue;
    if (++told <= kTold)
      host_->log(
          host_, FEIGN_LOG_WARN,
          (what + " (started " + (count == 1 ? "once" : std::to_string(count) + " times") + ")")
              .c_str());
    for (uint64_t i = 0; i < count; ++i)
      host_->left_out(host_, program.stream, "(program)", what.c_str(), 0, FEIGN_COMPUTED);
  }
  if (told > kTold)
    host_->log(
        host_, FEIGN_LOG_WARN,
        ("… and " + std::to_string(told - kTold) + " more such programs; feign info names them all")
            .c_str());
  programs_.clear();
  // The first process of a namespace has no parent that it could name, and is number 1.
  for (const auto& [key, process] : processes_) {
    const auto number = static_cast<int32_t>(process.pid),
               parent = static_cast<int32_t>(process.parent);
    if (number != 1 || parent != 0) continue;
    constexpr const char* kWhat =
        "processes in a PID namespace of their own (unshare --pid, a container) have their numbers "
        "there: whose children they are, and where they are in what they inherited, is not known";
    host_->log(host_, FEIGN_LOG_WARN, kWhat);
    host_->left_out(host_, lanes_.begin()->second->first_stream(), "(namespace)", kWhat, 0,
                    FEIGN_COMPUTED);
    break;
  }
}

// Processes that outlive the command: what they do from now on nobody reads.
void Provider::tell_who_goes_on() {
  const std::string records = options_.file[0];
  char folder[PATH_MAX], here[sizeof control_.host] = "";
  gethostname(here, sizeof here - 1);
  if (strcmp(here, control_.host) != 0 ||
      realpath((records.substr(0, records.rfind('/') + 1) + ".").c_str(), folder) == nullptr)
    return;
  std::string who;
  uint32_t count = 0;
  for (const auto& [pid, process] : by_pid_) {
    if (process->host != &hosts_.front()) continue;
    const std::string proc = "/proc/" + std::to_string(pid);
    std::ifstream environment(proc + "/environ"), name(proc + "/comm");
    std::string one;
    while (std::getline(environment, one, '\0') && one != std::string("FEIGN_CAPTURE=") + folder) {
    }
    if (!environment || !std::getline(name, one)) continue;
    going_.erase(pid);
    if (count++ < 3) who += (who.empty() ? "" : ", ") + one + " " + std::to_string(pid);
  }
  if (count != 0)
    host_->log(host_, FEIGN_LOG_WARN,
               (std::to_string(count) + (count == 1 ? " process goes" : " processes go") +
                " on after the command (" + who + (count > 3 ? ", …" : "") +
                "): what they do from now on is not in the trace")
                   .c_str());
}

// The record of a lane's front as an activity, or as one of those left out.
feign_status Provider::take(Lane& lane, feign_sink* out, bool& emitted) {
  if (!lane.around.empty()) {
    taken_ = &lane;
    Item item = std::move(lane.around.front());
    lane.around.pop_front();
    return tell(lane, std::move(item), out, emitted);
  }
  Item item = std::move(lane.front());
  lane.pop();
  if (const feign_status s = tell(lane, std::move(item), out, emitted); s < 0) return s;
  if (const feign_status s = lane.fill(); s < 0) return s;
  if (!lane.empty()) in_line(&lane);
  return FEIGN_OK;
}

feign_status Provider::tell(const Lane& lane, Item item, feign_sink* out, bool& emitted) {
  item.a.stream = goes_on_as(item.a.stream);
  const uint64_t duration = time(item.end) - time(item.start);
  if (item.code == FEIGN_CAPTURE_OP(FEIGN_CAPTURE_LEFT_OUT, FEIGN_CAPTURE_IDLE)) {
    host_->left_out(host_, item.a.stream, "no call",
                    "waits for a processor or a page (feign record --cpu-time)", duration, 1);
  } else if (item.code >> 12 == FEIGN_CAPTURE_LEFT_OUT) {
    if (const auto all = posix_left_outs(); (item.code & 0xFFF) < all.size()) {
      const LeftOutCall& l = all[item.code & 0xFFF];
      host_->left_out(host_, item.a.stream, l.name, l.why, duration, l.passed);
    }
  } else if (const uint32_t op = this->op(item.code);
             op != 0 && host_->op_info(host_, op) != nullptr) {
    if (const feign_status s = emit(lane, item, op, out); s < 0) return s;
    emitted = true;
  } else {  // what is left of a damaged folder
    host_->left_out(host_, item.a.stream, "(call)", "no layer describes it", duration, 0);
  }
  return FEIGN_OK;
}

feign_status Provider::emit(const Lane& lane, const Item& item, uint32_t op, feign_sink* out) {
  Process& process = lane.process();
  feign_activity* a = out->make(out);
  if (a == nullptr) return fail("out of memory", FEIGN_ERR_NOMEM);
  const uint32_t mine = a->host;
  *a = item.a;
  a->host = mine;
  a->op = op;
  a->start_ns = time(item.start);
  last_start_ = std::max(last_start_, a->start_ns);
  a->duration_ns = time(item.end) - a->start_ns;
  a->compute_ns = ns(item.own);
  if (item.depth == 0 && std::exchange(process.fresh, false) && control_.start != 0) {
    a->compute_ns += ns(control_.start);
    host_->left_out(host_, a->stream, "start",
                    "of the library that records: not in the pause before the next call",
                    ns(control_.start), FEIGN_COMPUTED);
  }
  a->marks = FEIGN_AT_DEPTH(item.depth);
  // MPI_MODE_CREATE, and there was nothing.
  if (op == FEIGN_MPIIO_FILE_OPEN && (a->flags & 1) != 0 && a->length == 0 && a->result >= 0)
    a->marks |= FEIGN_CREATES;
  if (item.code >> 12 <= FEIGN_CAPTURE_STDIO) hints(process, *a);
  if (item.code >> 12 >= FEIGN_CAPTURE_THIRD) third(process, *a, *host_->op_info(host_, op));
  if (item.code >> 12 == FEIGN_CAPTURE_POSIX)
    keep_account(lane, item, posix_calls()[item.code & 0xFFF].effect, *a);
  if (!item.values.empty())
    if (const feign_status s = host_->set_values(host_, a, item.values.data(),
                                                 static_cast<uint32_t>(item.values.size()));
        s < 0)
      return s;
  return out->emit(out, a);
}

// What a call changes in what is known of processes, and what they say of it.
void Provider::keep_account(const Lane& lane, const Item& item, Effect effect, feign_activity& a) {
  Process& process = lane.process();
  if (effect == Effect::kExitGroup) going_.erase(lane.pid());
  if (effect == Effect::kClose) process.descriptors[a.handle] = 0;
  if (says_second(effect) && a.handle2 != 0 && a.handle2 != FEIGN_CWD)
    a.mode = hint(process, a.handle2);
  // Whichever thread calls exec, the process goes on under its own number.
  Process* const next = effect == Effect::kExec && item.kind == FEIGN_RECORD_STARTED
                            ? started(process, lane.pid(), item.start)
                            : nullptr;
  if (next != nullptr) a.result = 0;  // also where its file was not there a moment before
  if (goes_apart(effect, a)) process.apart.insert(lane.thread());
  if (effect == Effect::kExec && a.result >= 0) {
    if (process.apart.contains(lane.thread()) ||
        process.apart.contains(static_cast<int32_t>(lane.pid())))
      takes_over(lane);
    a.stream = goes_on_as(lane.first_stream());
    if (next != nullptr) next->fresh = true;
    was_started(process, a, next != nullptr);
  }
  if (effect == Effect::kExit || effect == Effect::kExitGroup) a.marks |= FEIGN_NO_RESULT;
  // A launcher's child may be a rank: its stream is there when it is made.
  if (makes_process(effect) && a.result > 0) {
    const auto child = static_cast<int32_t>(a.result);
    const bool thread = (a.flags & CLONE_THREAD) != 0;
    if (!thread && process.rank < 0 && rank_of(process, child) >= 0) lane.stream_of(child, child);
    if (thread) process.threads.insert(child);
    is_made(lane, child, thread);
  }
}

feign_status Provider::ended() {
  tell_what_is_missing();
  for (const auto& [host, how, bound] : aligned_)
    for (const auto& [key, lane] : lanes_)
      if (lane->process().host == host) {
        host_->left_out(host_, lane->first_stream(), "clock",
                        (std::string(host->control.host) + ": " + how).c_str(),
                        static_cast<uint64_t>(whole(bound)), 0);
        break;
      }
  aligned_.clear();
  return FEIGN_END;
}

feign_status Provider::next(size_t want, feign_sink* out) {
  for (size_t done = 0; done < want;) {
    bool emitted = false;
    feign_status s = emit_owed(out, emitted);
    if (s >= 0 && !emitted) {
      Lane* const lane = taken_ != nullptr ? std::exchange(taken_, nullptr) : first();
      if (lane == nullptr) {
        if (all_end()) continue;
        return ended();
      }
      if (reaps(*lane)) {
        in_line(lane);
        continue;
      }
      s = emit_before(*lane, out, emitted);
      if (s >= 0 && taken_ == nullptr) s = take(*lane, out, emitted);
    }
    if (s < 0) return s;
    done += emitted;
  }
  return FEIGN_OK;
}

}  // namespace feign::capture

// ---- the table
// -----------------------------------------------------------------------------------

namespace {

using feign::capture::Options;
using feign::capture::Provider;

constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "The raw folder's file \"records\"."},
};

int probe(const char*, const void* head, size_t size) noexcept {
  constexpr uint64_t kMagic = FEIGN_CAPTURE_MAGIC;
  return size >= sizeof kMagic && memcmp(head, &kMagic, sizeof kMagic) == 0 ? 100 : 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "capture", "Reads the raw folder that feign record leaves behind if it is cut off.",
    kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_PROVIDER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "capture", FEIGN_VERSION, "MIT", kComponents};
