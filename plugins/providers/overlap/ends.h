// SPDX-License-Identifier: MIT
// Where files ended, by reads and seeks that met it: which of these and of writes came first.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "feign.h"
#include "providers/overlap/names.h"
#include "resolve/effects.h"

namespace feign {

// What a call on a file shows of its end: a write makes it longer, or so it seems; a read of less
// than was asked for met it; a seek from it tells where it is.
struct Tail {
  enum What : uint8_t { kNone, kRead, kReadAt, kAppend, kWriteAt, kMoved, kEnd };
  What what = kNone;
  uint32_t file = 0;
  uint64_t reader = 0;  // by its descriptor
  int64_t bytes = 0, asked = 0;
  int64_t at = -1;   // where it reads or writes, or the reader is then
  int64_t end = -1;  // where the file's end is
};
constexpr int64_t kFarthest = INT64_C(1) << 60;  // no offset is: sums of two do not overflow
inline Tail tail_of(Effect effect, const feign_activity& a, const std::vector<uint64_t>& values,
                    uint64_t process, const feign_host* host) {
  Tail t;
  if (a.file == 0 || a.result < 0 || (a.marks & FEIGN_NO_RESULT) != 0) return t;
  t.file = a.file;
  t.reader = process << 20 | (a.handle & 0xFFFFF);
  t.bytes = std::min(a.result, kFarthest);
  t.asked = static_cast<int64_t>(std::min<uint64_t>(a.length, kFarthest));
  // Where it reads or writes, if not where its descriptor is. A copy reads what it copies, and ends
  // where the file does, or where the other side is full.
  uint64_t offset = a.offset;
  if (effect == Effect::kCopy) t.asked = std::max<int64_t>(t.bytes, 1);
  if (effect == Effect::kCopy && !values.empty()) offset = values[0];
  const bool here =
      effect == Effect::kRead || effect == Effect::kWrite ||
      (offset == FEIGN_NO_OFFSET && effect != Effect::kPread && effect != Effect::kPwrite);
  const bool reads = effect == Effect::kRead || effect == Effect::kPread ||
                     effect == Effect::kPread2 || effect == Effect::kCopy;
  const bool writes =
      effect == Effect::kWrite || effect == Effect::kPwrite || effect == Effect::kPwrite2;
  if (!here) t.at = static_cast<int64_t>(std::min<uint64_t>(offset, kFarthest));
  if (reads && a.length != 0)
    t.what = here ? Tail::kRead : Tail::kReadAt;
  else if (writes && a.result != 0)
    t.what = here ? Tail::kAppend : Tail::kWriteAt;
  else if (effect == Effect::kClose || effect == Effect::kSeek)
    t.what = Tail::kMoved;
  if (effect == Effect::kClose) t.at = -1;
  if (effect == Effect::kSeek) t.at = a.result < kFarthest ? a.result : -1;
  if (t.at >= 0 && effect == Effect::kSeek) {
    const auto from = static_cast<int64_t>(a.offset);
    if (a.flags == SEEK_END && from > -kFarthest && t.at >= from) {
      t.what = Tail::kEnd;
      t.end = t.at - from;
    }
  }
  if ((reads || writes) && host->text(host, a.file, nullptr)[0] != '/') t.what = Tail::kNone;
  return t;
}

// How many bytes there are behind what each reader has read, of files that grow: known from the
// first time on that it met the end, or that it moved once somebody was told where that is.
class Tails {
 public:
  void note(const Tail& t) {
    if (t.what == Tail::kNone) return;
    const auto at = files_.find(t.file);
    if (t.what == Tail::kAppend) {
      int64_t& written = files_[t.file].written;
      written = std::min(written + t.bytes, kFarthest);
      return;
    }
    if (at == files_.end()) {
      if (t.what == Tail::kEnd || (t.what == Tail::kReadAt && t.bytes != 0 && t.bytes < t.asked))
        files_[t.file];
      else
        return;
    }
    File& file = files_[t.file];
    if (t.what == Tail::kRead) {
      const auto known = file.read.find(t.reader);
      if (t.bytes < t.asked)
        file.read[t.reader] = file.written;
      else if (known != file.read.end())
        known->second = std::min(known->second + t.bytes, kFarthest);
      return;
    }
    if (t.what == Tail::kWriteAt) {
      file.before += file.grows(t);
      return;
    }
    if (t.what == Tail::kReadAt) {
      if (t.bytes == 0 || t.bytes >= t.asked) return;
      file.told = true;
      file.before = t.at + t.bytes - file.written;
      return;
    }
    if (t.what == Tail::kEnd) {
      file.told = true;
      file.before = t.end - file.written;
    }
    if (t.at >= 0 && file.told)
      file.read[t.reader] = t.at - file.before;
    else
      file.read.erase(t.reader);
  }
  // Of two readers it is known what each met, and need not be guessed from what the other met.
  bool knows(const Tail& a, const Tail& b) const {
    if (a.what != Tail::kRead || b.what != Tail::kRead || a.file != b.file) return false;
    const auto file = files_.find(a.file);
    return file != files_.end() && file->second.read.contains(a.reader) &&
           file->second.read.contains(b.reader);
  }
  // Whether `late`, which ended after `early`, took effect before it: only so did each read get
  // what it got. Of several writes, each of which may be what was read, one that is just as long.
  Overtakes overtakes(const Tail& late, const Tail& early) const {
    const auto is_write = [](const Tail& t) {
      return t.what == Tail::kAppend || t.what == Tail::kWriteAt;
    };
    const bool writes = is_write(late);
    if (late.file != early.file) return Overtakes::kNo;
    const auto at = files_.find(early.file);
    // Files grow: of two who are told where the end is the first finds less.
    if (late.what == Tail::kEnd && early.what == Tail::kEnd && late.end < early.end &&
        (at == files_.end() || at->second.reaches() <= late.end))
      return Overtakes::kYes;
    if (writes == is_write(early)) return Overtakes::kNo;
    if (at == files_.end()) return Overtakes::kNo;
    const File& file = at->second;
    const Tail& found = writes ? early : late;
    const int64_t grows = file.grows(writes ? late : early);
    if (grows == 0) return Overtakes::kNo;
    int64_t there = 0, wanted = 0;  // how far the file goes, and went for who found it so
    if (found.what == Tail::kEnd) {
      if (!file.told) return Overtakes::kNo;
      there = file.before + file.written;
      wanted = found.end;
    } else if (found.what == Tail::kReadAt) {
      if (!file.told) return Overtakes::kNo;
      there = std::max<int64_t>(file.before + file.written - found.at, 0);
      wanted = found.bytes;
    } else {
      const auto known = file.read.find(found.reader);
      if (found.what != Tail::kRead || known == file.read.end()) return Overtakes::kNo;
      there = file.written - known->second;
      wanted = found.bytes;
    }
    const bool met_end = found.what == Tail::kEnd || found.bytes < found.asked;
    if (!writes) return met_end && there == wanted ? Overtakes::kYes : Overtakes::kNo;
    if (there >= wanted || (met_end && there + grows > wanted)) return Overtakes::kNo;
    return there + grows >= wanted ? Overtakes::kYes : Overtakes::kMay;
  }

 private:
  struct File {
    int64_t written = 0;
    bool told = false;   // where its end is
    int64_t before = 0;  // how long it was before the first write
    int64_t reaches() const { return told ? before + written : 0; }
    int64_t grows(const Tail& t) const {
      if (t.what == Tail::kAppend) return t.bytes;
      return told ? std::max<int64_t>(t.at + t.bytes - before - written, 0) : 0;
    }
    std::unordered_map<uint64_t, int64_t> read;  // of what was written, by reader
  };
  std::unordered_map<uint32_t, File> files_;
};

}  // namespace feign
