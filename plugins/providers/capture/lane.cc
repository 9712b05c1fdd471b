// SPDX-License-Identifier: MIT
// A lane: the records of one thread, in the order in which its calls ended. A call that others are
// in comes before those: its beginning holds its place until its record, which ended after them, is
// met.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "layers/posix_ops.h"
#include "providers/capture/provider.h"

namespace feign::capture {
namespace {

constexpr size_t kMaxHeld = size_t{1} << 18;

uint64_t load_bytes(const uint8_t* from, unsigned bytes) {
  uint64_t value = 0;
  memcpy(&value, from, bytes);
  return value;
}

// Whether a record is there.
bool is_record(const uint8_t* at, const uint8_t* end) {
  return at != nullptr && end - at >= static_cast<ptrdiff_t>(sizeof(feign_record_head)) &&
         load<uint16_t>(at) >= sizeof(feign_record_head) && load<uint16_t>(at) <= end - at;
}

// When the call of that record began and ended, the one before it having ended at `last`, and where
// its fields begin; null: it has no times.
const uint8_t* read_times(const uint8_t* record, uint64_t last, uint64_t& start, uint64_t& end) {
  const auto head = load<feign_record_head>(record);
  const uint8_t* const p = record + sizeof head;
  const unsigned pause_bytes = head.times >> 4, duration_bytes = head.times & 15;
  if (pause_bytes > 8 || duration_bytes > 8 ||
      sizeof head + pause_bytes + duration_bytes > head.length)
    return nullptr;
  start = last + load_bytes(p, pause_bytes);
  end = std::max(start, start + load_bytes(p + pause_bytes, duration_bytes));
  return p + pause_bytes + duration_bytes;
}

// What a field of a record says of its item.
void set_field(Item& item, unsigned field, uint64_t value) {
  feign_activity& a = item.a;
  const auto small = static_cast<uint32_t>(value);
  switch (field) {
    case FEIGN_FIELD_HANDLE:
      a.handle = small;
      break;
    case FEIGN_FIELD_HANDLE2:
      a.handle2 = small;
      break;
    case FEIGN_FIELD_PATH:
      a.path = small;
      break;
    case FEIGN_FIELD_PATH2:
      a.path2 = small;
      break;
    case FEIGN_FIELD_OFFSET:
      a.offset = value;
      break;
    case FEIGN_FIELD_LENGTH:
      a.length = value;
      break;
    case FEIGN_FIELD_FLAGS:
      a.flags = small;
      break;
    case FEIGN_FIELD_MODE:
      a.mode = small;
      break;
    case FEIGN_FIELD_VALUE:
    case FEIGN_FIELD_TEXT_VALUE:
    case FEIGN_FIELD_NOTHING:
      item.values.push_back(value);
      break;
    case FEIGN_FIELD_HINT:
      a.file = small;
      break;
    case FEIGN_FIELD_NODE:
      a.place = FEIGN_PLACE(0, value);
      break;
    case FEIGN_FIELD_TRACER:
      item.own = value;
      break;
    case FEIGN_FIELD_RESULT:
      a.result = static_cast<int64_t>(value);
      break;
    case FEIGN_FIELD_ERROR:
      a.result = static_cast<int64_t>(0 - value);
      break;
    default:
      break;
  }
}

}  // namespace

uint32_t Lane::stream_of(int32_t process, int32_t thread) const {
  return provider_.stream_of(process_, process, thread);
}

// Whether another record is in the chunk.
bool Lane::has_more() const { return is_record(at_, end_); }

uint64_t Lane::ends() const {
  const uint8_t* at = chunks_.rbegin()->second;
  const auto head = load<feign_chunk_head>(at);
  const uint8_t* const end = at + head.size;
  uint64_t last = head.tick, start = 0;
  for (at += sizeof head; is_record(at, end); at += load<uint16_t>(at))
    (void)read_times(at, last, start, last);
  return process_.host->to_main(last);
}

// Goes to the next chunk that there is. False at the end.
bool Lane::next_chunk() {
  if (!began_) {
    began_ = true;
    chunk_ = chunks_.begin();
  } else if (chunk_ != chunks_.end()) {
    ++chunk_;
  }
  if (chunk_ == chunks_.end()) return false;
  const auto head = load<feign_chunk_head>(chunk_->second);
  texts_.clear();
  at_ = chunk_->second + sizeof head;
  end_ = chunk_->second + head.size;
  last_ = head.tick;
  if (stream_ == 0) {
    const auto last = load<feign_chunk_head>(chunks_.rbegin()->second);
    pid_ = last.pid;
    thread_ = last.thread;
    stream_ = stream_of(pid_, thread_);
  }
  return true;
}

// A field's number, or its text's, from behind its first byte. False: the record is cut short.
bool Lane::value_of(unsigned field, unsigned bytes, const uint8_t*& p, const uint8_t* end,
                    uint64_t& value) {
  const bool text = field == FEIGN_FIELD_PATH || field == FEIGN_FIELD_PATH2 ||
                    field == FEIGN_FIELD_TEXT_VALUE || field == FEIGN_FIELD_HINT;
  const bool again = field == FEIGN_FIELD_TEXT_VALUE && bytes != 0;  // by where it stood before
  if (!text || again) {
    if (bytes > 8 || end - p < bytes) return false;
    value = load_bytes(p, bytes);
    p += bytes;
    if (!again) return true;
    const auto there = texts_.find(value);
    if (there == texts_.end()) return false;
    value = there->second;
    return true;
  }
  if (end - p < 2) return false;
  const auto length = load<uint16_t>(p);
  if (end - p - 2 < length) return false;
  const feign_host* host = provider_.host_;
  value = host->intern(host, reinterpret_cast<const char*>(p + 2), length);
  if (field == FEIGN_FIELD_TEXT_VALUE)
    texts_[static_cast<uint64_t>(p - 1 - chunk_->second)] = static_cast<uint32_t>(value);
  p += 2 + length;
  return true;
}

// The next record as an item. False at the end.
bool Lane::next(Item& item) {
  while (!has_more())
    if (!next_chunk()) return false;
  const auto head = load<feign_record_head>(at_);
  const uint8_t* p = read_times(at_, last_, item.start, item.end);
  const uint8_t* const end = at_ + head.length;
  at_ = end;
  if (p == nullptr) return true;
  last_ = item.end;
  item.start = process_.host->to_main(item.start);
  item.end = process_.host->to_main(item.end);
  item.kind = head.kind >> 4;
  item.depth = head.kind & 15;
  item.code = head.op;
  item.a.stream = stream_;
  while (p < end) {
    const unsigned field = *p >> 4, bytes = *p & 15;
    ++p;
    uint64_t value = 0;
    if (!value_of(field, bytes, p, end, value)) break;
    set_field(item, field, value);
  }
  return true;
}

// A call that was begun and never ended: what is in it counts one level less.
void Lane::give_up(Item& item) {
  const uint32_t depth = item.depth;
  bool behind = false;
  for (Item& other : queue_) {
    if (&other == &item) {
      behind = true;
      continue;
    }
    if (!behind) continue;
    if (other.depth <= depth) break;
    --other.depth;
  }
}

// Of a call that more others are in than are held, its record is looked for ahead: the next one
// that is in no call of it.
void Lane::look_ahead(Item& held) {
  // A record of its depth is another call's, if those that are held are not all in it: a handler
  // left it.
  if (std::any_of(queue_.begin() + 1, queue_.end(),
                  [&](const Item& other) { return other.depth <= held.depth; }))
    return;
  const auto was = std::tuple(chunk_, at_, end_, last_, texts_);
  for (Item item; next(item); item = {}) {
    if (item.kind == FEIGN_RECORD_CWD || item.kind == FEIGN_RECORD_FD || item.depth > held.depth)
      continue;
    if (item.kind == FEIGN_RECORD_BEGUN && item.depth == held.depth) held = std::move(item);
    break;
  }
  std::tie(chunk_, at_, end_, last_, texts_) = was;
}

// The descriptor that a system call made; 0: none.
uint32_t Lane::made_by(const Item& item) {
  const Call* const call = call_of(item);
  return call != nullptr && call->effect != Effect::kClose ? left_by(call->effect, item.a).handle
                                                           : 0;
}

// The open of a FIFO waits, and is made anew once a handler is over: if that had a descriptor of
// the number which comes back, it is behind.
void Lane::after_handler(std::deque<Item>::iterator held) {
  const uint32_t handle = made_by(*held);
  if (handle == 0 || std::none_of(held + 1, queue_.end(),
                                  [&](const Item& other) { return made_by(other) == handle; }))
    return;
  held->kind = FEIGN_RECORD_CALL;
  std::rotate(held, held + 1, queue_.end());
}

// Of a stream's call at the front that is about a name (fopen, remove), which system call in it is:
// what that finds tells who came first, and only then the stream has a descriptor. It is the first
// on a name that was not refused, or the last of those that were; 0: none.
size_t Lane::named_within() const {
  const Item& front = queue_.front();
  if (front.kind != FEIGN_RECORD_BEGUN || front.code >> 12 != FEIGN_CAPTURE_STDIO ||
      front.a.path == 0)
    return 0;
  size_t named = 0;
  for (size_t i = 1; i < queue_.size() && queue_[i].depth > front.depth; ++i) {
    const Item& inner = queue_[i];
    if (!inner.complete) break;
    if (inner.a.path == 0 && inner.a.handle != 0) break;  // of a handler that came in between
    if (inner.a.path == 0 || call_of(inner) == nullptr) continue;
    named = i;
    if (inner.a.result >= 0) break;
  }
  return named;
}

feign_status Lane::fill() {
  while (true) {
    while (!over_ && (queue_.empty() || (!queue_.front().complete && queue_.size() < kMaxHeld))) {
      Item item;
      if (!next(item)) {
        over_ = true;
        break;
      }
      if (item.kind == FEIGN_RECORD_CWD) {
        if (item.a.path != 0) process_.cwd = item.a.path;
      } else if (item.kind == FEIGN_RECORD_FD) {
        process_.descriptors[item.a.handle] = item.a.path;
      } else if (item.kind == FEIGN_RECORD_BEGIN || item.kind == FEIGN_RECORD_STARTED) {
        item.complete = false;
        queue_.push_back(std::move(item));
      } else if (item.kind == FEIGN_RECORD_BEGUN) {
        for (auto held = queue_.rbegin(); held != queue_.rend(); ++held)
          if (!held->complete && held->kind == FEIGN_RECORD_BEGIN && held->depth == item.depth) {
            *held = std::move(item);
            after_handler(held.base() - 1);
            break;
          }
      } else if (item.kind == FEIGN_RECORD_CALL) {
        // An exec that came back failed.
        if (!queue_.empty() && queue_.back().kind == FEIGN_RECORD_STARTED &&
            queue_.back().code == item.code)
          queue_.pop_back();
        queue_.push_back(std::move(item));
      }
    }
    if (queue_.empty()) return FEIGN_OK;
    Item& front = queue_.front();
    if (front.kind == FEIGN_RECORD_BEGIN && !over_) look_ahead(front);
    if (front.complete) {
      if (const size_t named = named_within(); named != 0) {
        const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(named);
        around.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
        queue_.erase(queue_.begin(), end);
      }
      return FEIGN_OK;
    }
    if (front.kind == FEIGN_RECORD_STARTED) {
      front.complete = true;
      return FEIGN_OK;
    }
    give_up(front);
    queue_.pop_front();
  }
}

const Call* Lane::call() const { return call_of(queue_.front()); }

const Call* Lane::call_of(const Item& item) {
  const uint32_t number = item.code & 0xFFF;
  if ((item.kind != FEIGN_RECORD_CALL && item.kind != FEIGN_RECORD_BEGUN) ||
      item.code >> 12 != FEIGN_CAPTURE_POSIX || number >= posix_calls().size())
    return nullptr;
  return &posix_calls()[number];
}

std::pair<Claim, uint64_t> Lane::next_on(const Claim& name) {
  constexpr size_t kNear = 8;
  const uint32_t path = name.text != 0 ? name.text : name.name;
  std::pair<Claim, uint64_t> found;
  const auto is_on_it = [&](const Item& item) {
    const Call* const call = call_of(item);
    if (call == nullptr || item.a.path != path) return false;
    found = {feign::claims(call->effect, item.a, provider_.host_)[0], item.end};
    return true;
  };
  size_t seen = 1;  // the front
  for (; seen < queue_.size() && seen < kNear; ++seen)
    if (is_on_it(queue_[seen])) return found;
  const auto was = std::pair(at_, last_);
  for (; seen < kNear && has_more(); ++seen) {
    Item item;
    if (!next(item) || is_on_it(item)) break;
  }
  std::tie(at_, last_) = was;
  return found;
}

uint64_t Lane::about() const {
  const Lock& lock = shown.lock;
  if (lock.what != Lock::kNone && lock.file == 0) return UINT64_MAX;  // of all files
  Claims names{};
  if (lock.what != Lock::kNone) names[0].name = lock.file;
  names[1].name = shown.tail.file;
  return names_of(claims) | names_of(names);
}

bool Lane::shares(const Lane& other) const {
  const Lock &mine = shown.lock, &its = other.shown.lock;
  if (mine.what != Lock::kNone && its.what != Lock::kNone &&
      (mine.file == its.file || mine.file == 0 || its.file == 0))
    return true;
  return (shown.tail.file != 0 && shown.tail.file == other.shown.tail.file) ||
         any_two(claims, other.claims, [](const Claim& a, const Claim& b) { return a.same(b); });
}

// When the front took effect, in ticks: calls that make a process, give up a descriptor, wake
// somebody or hand over bytes, and those of a library that others are in, when they started; exec
// and exit when no other thread made calls any more.
uint64_t Lane::when() {
  const Item& item = queue_.front();
  const Call* const call = this->call();
  const uint32_t layer = item.code >> 12;
  const bool over = item.kind == FEIGN_RECORD_CALL;
  uint64_t key = item.end;
  if (!over && queue_.size() > 1)  // a signal's handler came before it went on
    key = std::clamp(queue_[1].start, item.start, item.end);
  if (item.kind == FEIGN_RECORD_STARTED) {
    key = std::max(item.start, provider_.others_end(*this) + 1);
  } else if (item.depth != 0 || (!over && call == nullptr)) {
    if (!over || (call != nullptr && makes_process(call->effect))) key = item.start;
  } else if (layer == FEIGN_CAPTURE_MPI || layer == FEIGN_CAPTURE_MPIIO) {
    key = item.start;  // what a rank sends, or that it has come, others may know before it ends
  } else if (call != nullptr) {
    if (counts_from_start(call->effect)) key = item.start;
    switch (call->effect) {
      case Effect::kWrite:  // into a file that others see only when it is over
        if (shown.tail.what == Tail::kNone) key = item.start;
        break;
      // Who has it, or is refused it, before the call is over tells when it was given up.
      case Effect::kFlock:
        if ((item.a.flags & LOCK_UN) && shown.lock.what == Lock::kNone) key = item.start;
        break;
      case Effect::kFcntl:
        if ((item.a.flags == F_SETLK || item.a.flags == F_OFD_SETLK) && item.values.size() > 1 &&
            item.values[1] == F_UNLCK && shown.lock.what == Lock::kNone)
          key = item.start;
        break;
      case Effect::kFutex:
        if (futex_counts_from_start(item.a.flags)) key = item.start;
        break;
      default:
        break;
    }
  }
  return key_ = std::max(key_, key);
}

}  // namespace feign::capture
