// SPDX-License-Identifier: MIT
// Where files ended, by reads and seeks that met it: which of these and of writes came first.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "feign.h"
#include "providers/overlap/files.h"
#include "providers/overlap/names.h"
#include "trace/effects.h"

namespace feign {

// What a call on a file shows of its end: a write makes it longer, or so it seems; a read of less
// than was asked for met it; a seek from it tells where it is, and one from where its reader is,
// that.
struct Tail {
  enum What : uint8_t {
    kNone,
    kOpened,
    kRead,
    kReadAt,
    kAppend,
    kWriteAt,
    kMoved,
    kPlace,
    kEnd,
    kCut
  };
  What what = kNone;
  bool appends = false;  // a write, O_APPEND: where the file ends
  bool empties = false;  // an open: the file has nothing in it then
  bool writes = false;   // an open: to write
  bool stays = false;    // a stat, or a write at an offset: it moves nobody
  uint32_t file = 0;
  uint64_t reader = 0;  // the open file description, or its descriptor
  int64_t bytes = 0, asked = 0;
  int64_t at = -1;   // where it reads or writes, or the reader is then; -1: not known
  int64_t end = -1;  // where the file's end is; of kPlace, where the reader was
  // Others' calls on the bytes may be what it found.
  bool on_bytes() const {
    return what == kReadAt || what == kAppend || what == kWriteAt || what == kPlace ||
           what == kEnd || what == kCut;
  }
  bool met_end() const { return what == kEnd || bytes < asked; }
  bool writes_bytes() const { return what == kAppend || what == kWriteAt; }
  bool cuts() const { return what == kCut || (what == kOpened && empties); }
};
constexpr int64_t kFarthest = INT64_C(1) << 60;  // no offset is: sums of two do not overflow

// A read or a write, at its own offset if it has one, else where its descriptor is. A copy reads
// what it copies, and ends where the file does, or where the other side is full.
inline void read_or_write(Tail& t, Effect effect, const feign_activity& a,
                          const std::vector<uint64_t>& values, uint32_t flags) {
  const bool copies = effect == Effect::kCopy;
  const uint64_t offset = copies && !values.empty() ? values[0] : a.offset;
  const bool here =
      effect == Effect::kRead || effect == Effect::kWrite ||
      (offset == FEIGN_NO_OFFSET && effect != Effect::kPread && effect != Effect::kPwrite);
  if (!here) t.at = static_cast<int64_t>(std::min<uint64_t>(offset, kFarthest));
  if (copies) t.asked = std::max<int64_t>(t.bytes, 1);
  if (effect == Effect::kWrite || effect == Effect::kPwrite || effect == Effect::kPwrite2) {
    t.stays = !here;
    t.appends = (flags & O_APPEND) != 0;
    if (effect == Effect::kPwrite2)
      t.appends = (t.appends && (a.flags & kRwfNoAppend) == 0) || (a.flags & kRwfAppend) != 0;
    if (a.result != 0)
      t.what = here || t.appends ? Tail::kAppend : Tail::kWriteAt;  // pwrite(2), BUGS
  } else if (a.length != 0) {
    t.what = here ? Tail::kRead : Tail::kReadAt;
  }
}

inline void sought(Tail& t, const feign_activity& a) {
  t.what = Tail::kMoved;
  if (a.result >= kFarthest) return;
  t.at = a.result;
  const auto from = static_cast<int64_t>(a.offset);
  if ((a.flags != SEEK_END && a.flags != SEEK_CUR) || from <= -kFarthest || t.at < from) return;
  t.what = a.flags == SEEK_END ? Tail::kEnd : Tail::kPlace;
  t.end = t.at - from;
}

// `of`: the call's descriptor; what an open made.
inline Tail tail_of(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                    const Descriptor& of, uint64_t process, const feign_host* host) {
  Tail t;
  if (of.file == 0 || a.result < 0 || (a.marks & FEIGN_NO_RESULT) != 0) return t;
  t.file = of.file;
  t.reader = reader_of(of, process, a.handle);
  t.bytes = std::min(a.result, kFarthest);
  t.asked = static_cast<int64_t>(std::min<uint64_t>(a.length, kFarthest));
  switch (effect) {
    case Effect::kRead:
    case Effect::kWrite:
    case Effect::kPread:
    case Effect::kPwrite:
    case Effect::kPread2:
    case Effect::kPwrite2:
    case Effect::kCopy:
      read_or_write(t, effect, a, values, of.open != nullptr ? of.open->flags : 0);
      break;
    case Effect::kSeek:
      sought(t, a);
      break;
    case Effect::kClose:
      if (of.last) t.what = Tail::kMoved;
      break;
    case Effect::kStatat:
      if (a.path != 0) break;
      [[fallthrough]];
    case Effect::kFstat:
      t.stays = true;
      t.end = t.asked;
      if (S_ISREG(a.mode)) t.what = Tail::kEnd;
      break;
    case Effect::kFtruncate:
      t.what = Tail::kCut;
      t.end = t.asked;
      break;
    case Effect::kOpen:
    case Effect::kCreat: {
      constexpr uint32_t kNew = O_CREAT | O_EXCL;
      if (of.open != nullptr) t.what = Tail::kOpened;
      t.at = t.end = 0;
      t.writes = effect == Effect::kCreat || (a.flags & O_ACCMODE) != O_RDONLY;
      t.empties = effect == Effect::kCreat || (a.flags & O_TRUNC) != 0 || (a.flags & kNew) == kNew;
      break;
    }
    default:
      break;
  }
  if (t.what != Tail::kNone && host->text(host, t.file, nullptr)[0] != '/') t.what = Tail::kNone;
  return t;
}

// Moves the description as the call did.
inline void move(Description& d, const Tail& t) {
  if (t.stays) return;
  if (t.what == Tail::kMoved || t.what == Tail::kPlace || t.what == Tail::kEnd)
    d.at = t.at;
  else if (t.what == Tail::kAppend && t.appends)
    d.at = -1;
  else if ((t.what == Tail::kRead || t.what == Tail::kAppend) && d.at >= 0)
    d.at = std::min(d.at + t.bytes, kFarthest);
}

// How far files that grow go, and where each reader is: by offsets, which are told by opens and
// seeks; or, until it is told where the end is (by who met it at a known offset, or sought it), by
// how much was written since.
class Tails {
 public:
  void note(const Tail& t) {
    if (t.what == Tail::kNone) return;
    const bool met = t.bytes < t.asked;
    const bool tells = t.what == Tail::kAppend || (t.what == Tail::kEnd && !t.stays) ||
                       t.what == Tail::kCut ||
                       (t.what == Tail::kOpened && (t.writes || t.empties)) ||
                       (t.what == Tail::kReadAt && t.bytes != 0 && met);
    const auto known = files_.find(t.file);
    if (known == files_.end() && !tells) return;
    File& file = known != files_.end() ? known->second : files_[t.file];
    const auto at = file.readers.find(t.reader);
    Reader* const reader = at != file.readers.end() ? &at->second : nullptr;
    switch (t.what) {
      case Tail::kOpened:
        if (t.empties) file.cut(0);
        file.put(t.reader, 0);
        break;
      case Tail::kRead:
        if (reader != nullptr) reader->at = std::min(reader->at + t.bytes, kFarthest);
        if (!met) break;
        if (reader == nullptr)
          file.readers[t.reader] = {file.written, false};
        else if (!reader->by_offset && !file.told)
          reader->at = file.written;
        else if (t.bytes != 0 || reader->by_offset || reader->at <= file.written)
          file.tell(reader->by_offset ? reader->at : file.before + reader->at);
        break;
      case Tail::kReadAt:
        if (t.bytes != 0 && met) file.tell(t.at + t.bytes);
        break;
      case Tail::kAppend: {
        const int64_t grows = file.grows(t);
        file.written = std::min(file.written + grows, kFarthest);
        if (t.stays) break;
        if (t.appends)
          file.readers[t.reader] = {file.written, false};
        else if (reader != nullptr)
          reader->at = std::min(reader->at + t.bytes, kFarthest);
        break;
      }
      case Tail::kWriteAt:
        file.written = std::min(file.written + file.grows(t), kFarthest);
        break;
      case Tail::kCut:
        file.cut(t.end);
        break;
      case Tail::kEnd:
        file.tell(t.end);
        if (t.stays) break;
        [[fallthrough]];
      case Tail::kPlace:
      case Tail::kMoved:
        if (t.at >= 0)
          file.put(t.reader, t.at);
        else
          file.readers.erase(t.reader);
        break;
      case Tail::kNone:
        break;
    }
    // Of descriptions that nobody was seen to close, the first are forgotten.
    constexpr size_t kMostReaders = 1024;
    if (file.readers.size() > kMostReaders) file.readers.erase(file.readers.begin());
  }
  // Of two readers it is known what each met, and need not be guessed from what the other met.
  bool knows(const Tail& a, const Tail& b) const {
    if (a.what != Tail::kRead || b.what != Tail::kRead || a.file != b.file) return false;
    const auto file = files_.find(a.file);
    int64_t there = 0;
    return file != files_.end() && file->second.left_of(a.reader, there) &&
           file->second.left_of(b.reader, there);
  }
  // Whether `late`, which ended after `early`, took effect before it: only so did each read get
  // what it got. Of several writes, each of which may be what was read, one that is just as long.
  Overtakes overtakes(const Tail& late, const Tail& early) const {
    if (late.file != early.file) return Overtakes::kNo;
    static const File kUnknown;
    const auto at = files_.find(early.file);
    const File& file = at != files_.end() ? at->second : kUnknown;
    if (late.reader == early.reader && (late.what == Tail::kPlace) != (early.what == Tail::kPlace))
      return file.found_place(late, early);
    if (late.what == Tail::kEnd && early.what == Tail::kEnd) {
      // Files grow: of two who are told where the end is the first finds less.
      const bool less = late.end < early.end && file.reaches() <= late.end;
      return less ? Overtakes::kYes : Overtakes::kNo;
    }
    if (late.what == Tail::kRead && early.what == Tail::kRead)
      return late.reader == early.reader ? file.read_after(late, early) : Overtakes::kNo;
    if (late.cuts() != early.cuts()) return file.found_before_cut(late, early);
    if (late.writes_bytes() && !early.writes_bytes()) return file.found_written(early, late);
    if (early.writes_bytes() && !late.writes_bytes()) return file.not_found_written(late, early);
    return Overtakes::kNo;
  }

 private:
  struct Reader {
    int64_t at = 0;
    bool by_offset = false;  // else as `written` counts
  };
  struct File {
    int64_t written = 0;  // bytes by which it grew
    bool told = false;    // where its end is; then all readers are as `written` counts
    int64_t before = 0;   // how long it was before the first write
    std::map<uint64_t, Reader> readers;

    int64_t reaches() const { return told ? before + written : 0; }
    // How much of the file is behind where the reader is.
    bool left_of(uint64_t number, int64_t& left) const {
      const auto at = readers.find(number);
      if (at == readers.end() || at->second.by_offset) return false;
      left = written - at->second.at;
      return true;
    }
    int64_t grows(const Tail& t) const {
      if (t.what == Tail::kWriteAt)
        return told ? std::clamp<int64_t>(t.at + t.bytes - reaches(), 0, t.at + t.bytes) : 0;
      int64_t left = 0;
      if (t.appends || !told || !left_of(t.reader, left)) return t.bytes;
      return std::clamp<int64_t>(t.bytes - left, 0, t.bytes);
    }
    // Of two who share a reader: who met the end came after all who got what was left.
    Overtakes read_after(const Tail& late, const Tail& early) const {
      int64_t left = 0;
      if (early.bytes >= early.asked || late.bytes == 0) return Overtakes::kNo;
      if (!left_of(early.reader, left)) return Overtakes::kMay;
      return left > early.bytes ? Overtakes::kYes : Overtakes::kNo;
    }
    // How far the file goes from where it is looked at, and how far it went for who found it so.
    struct Reach {
      int64_t there, wanted;
    };
    std::optional<Reach> reach_of(const Tail& found) const {
      int64_t left = 0;
      if (found.what == Tail::kRead && left_of(found.reader, left)) return Reach{left, found.bytes};
      if (told && found.what == Tail::kEnd) return Reach{reaches(), found.end};
      if (told && found.what == Tail::kReadAt) return Reach{reaches() - found.at, found.bytes};
      return std::nullopt;
    }
    // A write that ended after who found its bytes.
    Overtakes found_written(const Tail& found, const Tail& written) const {
      const std::optional<Reach> reach = reach_of(found);
      const int64_t grows = this->grows(written);
      if (!reach || grows == 0) return Overtakes::kNo;
      const auto [there, wanted] = *reach;
      const int64_t after = std::max<int64_t>(there + grows, 0);
      if (std::max<int64_t>(there, 0) >= wanted || (found.met_end() && after > wanted))
        return Overtakes::kNo;
      if (after >= wanted) return Overtakes::kYes;
      // A write over the end of a page is seen in two steps by those who look meanwhile: not this
      // one.
      constexpr int64_t kPage = 4096;
      return told && (reaches() + wanted - there) % kPage == 0 ? Overtakes::kNo : Overtakes::kMay;
    }
    // A write that ended before who met the file's end where it was without that write.
    Overtakes not_found_written(const Tail& found, const Tail& written) const {
      if (!found.met_end()) return Overtakes::kNo;
      // Wherever the file ended, it did not where a write ended that goes farther.
      if (!told && found.what == Tail::kReadAt && written.what == Tail::kWriteAt)
        return found.at + found.bytes < written.at + written.bytes ? Overtakes::kYes
                                                                   : Overtakes::kNo;
      const std::optional<Reach> reach = reach_of(found);
      if (!reach) return Overtakes::kNo;
      const auto [there, wanted] = *reach;
      const bool without = std::max<int64_t>(there, 0) == wanted;
      const bool with = std::max<int64_t>(there + grows(written), 0) == wanted;
      return without && !with ? Overtakes::kYes : Overtakes::kNo;
    }
    // Of a seek that tells where its reader was, and another call of those who share that.
    Overtakes found_place(const Tail& late, const Tail& early) const {
      const bool seeks = late.what == Tail::kPlace;
      const Tail &seek = seeks ? late : early, &other = seeks ? early : late;
      const auto reader = readers.find(seek.reader);
      const bool moves = other.what == Tail::kRead || (other.what == Tail::kAppend && !other.stays);
      if (!moves || reader == readers.end() || (!told && !reader->second.by_offset))
        return Overtakes::kNo;
      const int64_t there = reader->second.at + (reader->second.by_offset ? 0 : before);
      const int64_t then = (other.appends && told ? reaches() : there) + other.bytes;
      if (seeks) return there == seek.end && then != there ? Overtakes::kYes : Overtakes::kNo;
      if (there == seek.end || then > seek.end) return Overtakes::kNo;
      return then == seek.end ? Overtakes::kYes : Overtakes::kMay;
    }
    // Of a call that cut the file and another, which is known to have found it as it was before or
    // as it was after.
    Overtakes found_before_cut(const Tail& late, const Tail& early) const {
      const Tail &cut = late.cuts() ? late : early, &found = late.cuts() ? early : late;
      int64_t at = found.at, left = 0;
      if (found.what == Tail::kRead) at = left_of(found.reader, left) ? reaches() - left : -1;
      const bool reads = found.what == Tail::kRead || found.what == Tail::kReadAt;
      if (!told || (!reads && found.what != Tail::kEnd) || (reads && at < 0)) return Overtakes::kNo;
      const auto fits = [&](int64_t end) {
        if (!reads) return found.end == end;
        const int64_t there = std::max<int64_t>(end - at, 0);
        return found.bytes < found.asked ? there == found.bytes : there >= found.bytes;
      };
      const bool before = fits(reaches()), after = fits(cut.end);
      return (late.cuts() ? after && !before : before && !after) ? Overtakes::kYes : Overtakes::kNo;
    }
    void put(uint64_t number, int64_t offset) {
      readers[number] = {told ? offset - before : offset, !told};
    }
    // Its end is there: readers stay where they are.
    void tell(int64_t end) {
      const int64_t now = std::min(end, kFarthest) - written;
      for (auto& [number, r] : readers)
        if (told || r.by_offset) r = {r.at + before - now, false};
      before = now;
      told = true;
    }
    // … and was elsewhere before.
    void cut(int64_t end) {
      if (!told) std::erase_if(readers, [](const auto& r) { return !r.second.by_offset; });
      tell(end);
    }
  };
  std::unordered_map<uint32_t, File> files_;
};

}  // namespace feign
