// SPDX-License-Identifier: MIT
// Reads and writes of MPI's files.
#include <algorithm>
#include <cerrno>
#include <climits>

#include "layers/mpiio_ops.h"
#include "replayers/mpi/files.h"

namespace feign::mpi {
namespace {

// What goes into a call that moves data, whatever its name.
struct Data {
  MPI_File file;
  MPI_Offset offset;
  void* at;
  int count;
  MPI_Datatype type;
  MPI_Status* status;
  MPI_Request* request;
};
struct DataCall {
  int (*call)(Data&);
  bool tells;  // how many bytes it moved; others have only begun
};
#include "layers/mpiio_replay.inc"

// What makes at once what this begins: nobody needs to wait for others in it, but where a split
// call may wait, too.
uint32_t at_once(uint32_t op) {
  switch (op) {
    case FEIGN_MPIIO_FILE_IREAD:
    case FEIGN_MPIIO_FILE_IREAD_ALL:
      return FEIGN_MPIIO_FILE_READ;
    case FEIGN_MPIIO_FILE_IREAD_AT:
    case FEIGN_MPIIO_FILE_IREAD_AT_ALL:
      return FEIGN_MPIIO_FILE_READ_AT;
    case FEIGN_MPIIO_FILE_IREAD_SHARED:
      return FEIGN_MPIIO_FILE_READ_SHARED;
    case FEIGN_MPIIO_FILE_IWRITE:
    case FEIGN_MPIIO_FILE_IWRITE_ALL:
      return FEIGN_MPIIO_FILE_WRITE;
    case FEIGN_MPIIO_FILE_IWRITE_AT:
    case FEIGN_MPIIO_FILE_IWRITE_AT_ALL:
      return FEIGN_MPIIO_FILE_WRITE_AT;
    case FEIGN_MPIIO_FILE_IWRITE_SHARED:
      return FEIGN_MPIIO_FILE_WRITE_SHARED;
    case FEIGN_MPIIO_FILE_READ_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_READ_ALL;
    case FEIGN_MPIIO_FILE_READ_AT_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_READ_AT_ALL;
    case FEIGN_MPIIO_FILE_READ_ORDERED_BEGIN:
      return FEIGN_MPIIO_FILE_READ_ORDERED;
    case FEIGN_MPIIO_FILE_WRITE_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_WRITE_ALL;
    case FEIGN_MPIIO_FILE_WRITE_AT_ALL_BEGIN:
      return FEIGN_MPIIO_FILE_WRITE_AT_ALL;
    case FEIGN_MPIIO_FILE_WRITE_ORDERED_BEGIN:
      return FEIGN_MPIIO_FILE_WRITE_ORDERED;
    default:
      return op;
  }
}
bool ends_split(uint32_t op) {
  return op == FEIGN_MPIIO_FILE_READ_ALL_END || op == FEIGN_MPIIO_FILE_READ_AT_ALL_END ||
         op == FEIGN_MPIIO_FILE_READ_ORDERED_END || op == FEIGN_MPIIO_FILE_WRITE_ALL_END ||
         op == FEIGN_MPIIO_FILE_WRITE_AT_ALL_END || op == FEIGN_MPIIO_FILE_WRITE_ORDERED_END;
}

// Whether so many bytes from there on, in etypes of the view, are more than the file has.
bool past_end(const File& f, MPI_Offset from, uint64_t bytes) {
  MPI_Offset size = 0, last = 0;
  if (bytes == 0 || MPI_File_get_size(f.file, &size) != MPI_SUCCESS) return false;
  from += static_cast<MPI_Offset>((bytes - 1) / f.unit);
  return MPI_File_get_byte_offset(f.file, from, &last) == MPI_SUCCESS &&
         last + static_cast<MPI_Offset>(f.unit) > size;
}

// Whether a read that is only begun may meet the end: there Open MPI's would never be over. Of one
// that all begin together, whether anybody's does, since ROMIO's is made together.
bool may_meet_end(Stream& s, uint32_t op, const File& f, bool split) {
  // Others may move the shared pointer before it is made.
  if (op == FEIGN_MPIIO_FILE_READ_ORDERED_BEGIN || op == FEIGN_MPIIO_FILE_IREAD_SHARED) return true;
  auto from = static_cast<MPI_Offset>(s.known(s.args->offset, 0));
  if (s.args->offset == kAbsent) MPI_File_get_position(f.file, &from);
  int may = past_end(f, from, s.a->length);
  if (split && f.group->apart)
    FEIGN_MUST(MPI_Allreduce(MPI_IN_PLACE, &may, 1, MPI_INT, MPI_MAX, f.group->comm));
  return may != 0;
}

// The memory of a read or write, by its datatype where that fits.
Piece memory_of(Stream& s, bool writes) {
  char* base = writes ? s.r->data.get() : s.received.get();
  const auto room = static_cast<int64_t>(s.r->longest);
  const uint64_t count = s.value(s.args->count);
  if (s.args->type != kAbsent && count <= INT_MAX) {
    const Type& t = s.type(s.args->type);
    const bool same =
        t.size > 0 && t.size * static_cast<int64_t>(count) == static_cast<int64_t>(s.a->length);
    if (same && t.type != MPI_DATATYPE_NULL && t.extent >= 0 && t.true_extent >= 0 &&
        t.extent <= room && t.low >= 0 && t.true_low >= 0 && t.true_low <= room &&
        t.true_extent <= room && t.have_room(count, room - t.true_extent - t.true_low))
      return {base, static_cast<int>(count), t.type};
  }
  return bytes_at(s, base, std::min<uint64_t>(s.a->length, s.r->longest));
}

}  // namespace

void read_or_write(const FileCall& c) {
  Stream& s = c.s;
  Replayer& r = c.r;
  const feign_activity& a = c.a;
  const File& file = c.file;
  const uint32_t op = c.op, kind = r.host->op_info(r.host, op)->kind;
  const bool reads = kind == FEIGN_KIND_READ, writes = kind == FEIGN_KIND_WRITE;
  const bool failed = by_circumstance(a.result);
  if (failed && !c.meets) return s.emulate();
  if (writes && r.room.full(a.length)) {
    c.meet_others();
    s.outcome->result = -EDQUOT;
    s.outcome->why = r.room.why();
    return;
  }
  if (file.over && ends_split(op)) {
    s.outcome->result = a.result;
    return;
  }
  if (writes) r.room.add(a.length);
  // Any thread of the process completes Open MPI's requests of files, also one that another
  // thread has half made. So there are none where several of its threads call MPI.
  const DataCall& begins = kMpiioData[op - FEIGN_MPIIO_FIRST];
  const uint32_t once = at_once(op);
  const bool split = once != op && mpiio_does(once) == Does::kMeet;
  const bool over = r.callers || (reads && !begins.tells && may_meet_end(s, op, file, split));
  const DataCall& call = over ? kMpiioData[once - FEIGN_MPIIO_FIRST] : begins;
  Piece m = memory_of(s, writes);
  const auto done = failed ? 0 : static_cast<uint64_t>(a.result);
  // What had no room then has none now.
  if (writes && begins.tells && (a.marks & FEIGN_NO_RESULT) == 0 && done < a.length)
    m = bytes_at(s, m.at, std::min<uint64_t>(done, r.longest));
  if (failed) m.count = 0;  // the others may have made it
  // In etypes of the view, as the program gave it.
  const auto at = static_cast<MPI_Offset>(s.known(s.args->offset, a.offset));
  MPI_Status status{};  // ROMIO says nothing of who moves nothing
  MPI_Request request = MPI_REQUEST_NULL;
  Data data{file.file, at, m.at, m.count, m.type, &status, &request};
  const int code = call.call(data);
  if (split) {
    const std::lock_guard lock(r.files_mutex);
    r.files[a.handle].over = over || code != MPI_SUCCESS;
  }
  // Whoever goes on may make the file longer than another one finds it.
  c.meet_others();
  s.answer(code);
  if (failed && code == MPI_SUCCESS) {
    if (c.later && !split) remember(s, request);
    return s.emulate();
  }
  if (code != MPI_SUCCESS) return;
  if (c.later && !split) remember(s, request);
  if (!begins.tells) {
    // How many bytes it was shows when it is over.
    s.outcome->result = a.result;
    return;
  }
  MPI_Count moved = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &moved);
  s.outcome->result = moved == MPI_UNDEFINED ? 0 : static_cast<int64_t>(moved);
  // Of a collective read Open MPI says that it was all that was asked for.
  if (c.meeting && reads && done == a.length && s.outcome->result < a.result)
    s.outcome->result = a.result;
  if (c.meets && op != FEIGN_MPIIO_FILE_READ_ORDERED && reads && done < a.length &&
      s.outcome->result == static_cast<int64_t>(a.length)) {
    MPI_Offset from = at;
    if (s.args->offset == kAbsent && MPI_File_get_position(file.file, &from) == MPI_SUCCESS)
      from -= static_cast<MPI_Offset>(a.length / file.unit);
    if (past_end(file, from, a.length)) s.outcome->result = a.result;
  }
}

}  // namespace feign::mpi
