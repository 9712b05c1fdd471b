// SPDX-License-Identifier: MIT
#include "replay/activity_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "report/format.h"

namespace feign {
namespace {

void mark(std::vector<bool>& seen, uint32_t number) {
  if (number >= seen.size()) seen.resize(std::max<size_t>(number + size_t{1}, seen.size() * 2));
  seen[number] = true;
}

}  // namespace

Result<std::unique_ptr<ActivityLog>> ActivityLog::create(const std::string& path) {
  std::unique_ptr<ActivityLog> log(new ActivityLog(path));
  const ActivityLogHeader header{};
  if (!log->file_.open(path)) return errno_error("write " + path, errno);
  if (lseek(log->file_.fd(), 0, SEEK_CUR) < 0)
    return Error(
        FEIGN_ERR_ARGUMENT,
        "write " + path + ": is a pipe or the like, want a file: its beginning comes last");
  if (!log->put(&header, sizeof header)) return errno_error("write " + path, errno);
  return log;
}

bool ActivityLog::put(const void* data, size_t size) { return write_all(file_.fd(), data, size); }

void ActivityLog::write(const std::vector<DoneActivity>& records) {
  const std::lock_guard lock(mutex_);
  if (errno_ != 0) return;
  for (const DoneActivity& a : records) {
    mark(ops_, a.op);
    mark(paths_, a.path);
    mark(streams_, a.stream);
  }
  if (!put(records.data(), records.size() * sizeof records[0])) errno_ = errno;
  count_ += records.size();
}

Result<void> ActivityLog::finish(const Tables& tables, uint64_t begin_ns, uint64_t end_ns) {
  using Json = nlohmann::ordered_json;
  Json names;
  names["ops"] = Json::object();
  for (uint32_t i = 1; i < ops_.size(); ++i)
    if (ops_[i])
      names["ops"][std::to_string(i)] = {{"name", op_name(tables, i)},
                                         {"kind", tables.ops.info(i)->kind}};
  names["streams"] = Json::object();
  for (uint32_t i = 1; i < streams_.size(); ++i) {
    if (!streams_[i]) continue;
    const feign_stream_info info = tables.streams.info(i);
    names["streams"][std::to_string(i)] = {
        {"process", info.process}, {"thread", info.thread}, {"rank", info.rank}};
  }
  names["paths"] = Json::object();
  for (uint32_t i = 1; i < paths_.size(); ++i)
    if (paths_[i]) names["paths"][std::to_string(i)] = tables.strings.text(i);
  const std::string text = names.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const ActivityLogHeader header{{'F', 'E', 'I', 'G', 'N', 'A', 'C', 'T'},
                                 1,
                                 sizeof(DoneActivity),
                                 count_,
                                 sizeof(ActivityLogHeader) + count_ * sizeof(DoneActivity),
                                 begin_ns,
                                 end_ns};
  if (errno_ == 0 && (!put(text.data(), text.size()) || lseek(file_.fd(), 0, SEEK_SET) != 0 ||
                      !put(&header, sizeof header) || !file_.finish()))
    errno_ = errno;
  if (errno_ != 0) return errno_error("write " + path_, errno_);
  return {};
}

}  // namespace feign
