// SPDX-License-Identifier: MIT
// Rules of replayers and writers.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "check/rules.h"

namespace feign::check {

void check_replayer(const Component& component, Place& place, Rules& rules, const std::string& name,
                    const std::string& lacks) {
  rules.run(name + ": skips or refuses an op that it does not know", [&] {
    if (!lacks.empty()) return skip(lacks);
    Tables tables;
    auto instance = create(component, tables, place);
    // Some can be had once in a process.
    if (!instance && instance.error().code() == FEIGN_ERR_UNSUPPORTED)
      return skip(instance.error().text());
    if (!instance) return fail(instance.error().text());
    static constexpr feign_op_info kOp = {
        sizeof(feign_op_info), 0, "unheard-of",           "feign-check", FEIGN_KIND_OTHER,
        FEIGN_RESULT_EXACT,    0, sizeof(feign_arg_info), nullptr};
    static constexpr const feign_op_info* kOps[] = {&kOp};
    const feign_layer layer = {sizeof(feign_layer), 1, "feign-check", kOps};
    auto op = tables.ops.add(layer);
    if (!op) return fail(op.error().text());
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = -1;
    info.process = info.thread = 1;
    info = tables.streams.info(tables.streams.find_or_add(info));
    const auto& api = (*instance)->api<feign_replayer>();
    void* stream = nullptr;
    feign_status status = api.open_stream((*instance)->self(), &info, &stream);
    if (status != FEIGN_OK) return fail((*instance)->not_ok("open_stream()", status).text());
    Record record{};
    record.a.id = 1;
    record.a.op = *op;
    record.a.stream = info.id;
    record.a.marks = FEIGN_RESOLVED;
    feign_outcome outcome{sizeof(feign_outcome), FEIGN_DONE, 0, nullptr};
    status = api.execute((*instance)->self(), stream, &record.a, &outcome);
    Verdict verdict = ok();
    if (status < 0) {
      const std::string text = (*instance)->failure(status).text();
      if (text.find(kSilent) != std::string::npos) verdict = fail(text);
    } else if (status != FEIGN_OK) {
      verdict = fail((*instance)->not_ok("execute()", status).text());
    } else if (outcome.doing > FEIGN_SKIPPED) {
      verdict = fail("outcome.doing is " + std::to_string(outcome.doing) + ", want a feign_doing");
    } else if (outcome.doing == FEIGN_SKIPPED && (outcome.why == nullptr || *outcome.why == '\0')) {
      verdict = fail("it skipped the op, and outcome.why does not say why");
    } else if (outcome.doing != FEIGN_SKIPPED && api.layers != nullptr) {
      verdict = fail("it claims to have done an op of a layer that is not among its layers");
    }
    api.close_stream((*instance)->self(), stream);
    return verdict;
  });
}

void check_writer(const Component& component, Place& place, Rules& rules, const std::string& name) {
  const bool has_file = option_named(component, "file") != nullptr;
  const std::string missing = required(component, place);
  const auto& api = *static_cast<const feign_writer*>(component.table->api);
  const std::string suffix = FEIGN_HAS(&api, suffix) && api.suffix != nullptr ? api.suffix : ".out";
  // Writes activities to `file`. A format that has no place for any of these is left out.
  const auto write_to = [&](const std::string& file, bool finish) -> Verdict {
    Tables tables;
    Trace trace(tables);
    auto instance = create(component, tables, place, {{"file", file}});
    if (!instance) return fail(instance.error().text());
    std::vector<const feign_activity*> items;
    for (size_t i = 0; i < kActivities; ++i) items.push_back(&trace[i].a);
    for (size_t at = 0; at < kActivities; at += 64) {
      const size_t count = std::min<size_t>(64, kActivities - at);
      const feign_status status = api.write((*instance)->self(), items.data() + at, count);
      if (status != FEIGN_OK) return fail((*instance)->not_ok("write()", status).text());
    }
    if (!finish) return ok();
    const feign_status status = api.finish((*instance)->self());
    if (status == FEIGN_OK) return ok();
    const std::string why = (*instance)->not_ok("finish()", status).text();
    return status == FEIGN_ERR_UNSUPPORTED ? skip(why) : fail(why);
  };
  const auto can_run = [&] {
    if (!has_file) return skip("it has no option \"file\"");
    return missing.empty() ? ok() : skip("its options " + missing + " have no defaults");
  };
  struct stat st;
  rules.run(name + ": writes its file", [&] {
    if (const Verdict verdict = can_run(); verdict.kind != Verdict::kOk) return verdict;
    const std::string file = place.directory + "/written" + suffix;
    if (const Verdict verdict = write_to(file, true); verdict.kind != Verdict::kOk) return verdict;
    return stat(file.c_str(), &st) == 0 && st.st_size > 0 ? ok() : fail("the file is not there");
  });
  rules.run(name + ": leaves nothing half-written after a failure", [&] {
    if (const Verdict verdict = can_run(); verdict.kind != Verdict::kOk) return verdict;
    const std::string file = place.directory + "/unfinished" + suffix;
    if (const Verdict verdict = write_to(file, false); verdict.kind != Verdict::kOk) return verdict;
    return stat(file.c_str(), &st) != 0 ? ok() : fail("the file is there without finish()");
  });
  rules.run(name + ": fails in words where it cannot write", [&] {
    if (const Verdict verdict = can_run(); verdict.kind != Verdict::kOk) return verdict;
    const auto [kind, why] = write_to(place.directory + "/not-there/file" + suffix, true);
    if (kind == Verdict::kOk)
      return fail("it says that it wrote below a directory that is not there");
    return why.find("not-there") != std::string::npos
               ? ok()
               : fail("its message does not name the file: " + why);
  });
}

}  // namespace feign::check
