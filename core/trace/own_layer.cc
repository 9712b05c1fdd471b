// SPDX-License-Identifier: MIT
#include "trace/own_layer.h"

#include "base/number.h"

namespace feign {

void OwnLayer::add(uint32_t number, std::string name, uint32_t kind, uint32_t result_kind,
                   std::vector<Arg> args) {
  if (number > ops_.size()) ops_.resize(number);
  auto op = std::make_unique<Op>();
  op->name = std::move(name);
  op->args = std::move(args);
  for (const Arg& arg : op->args) {
    auto& names = op->names.emplace_back();
    for (const auto& [text, value] : arg.names) names.push_back({text.c_str(), value});
  }
  for (size_t i = 0; i < op->args.size(); ++i) {
    const Arg& arg = op->args[i];
    const auto& names = op->names[i];
    op->infos.push_back({arg.name.c_str(), arg.type, arg.slot, arg.index,
                         static_cast<uint32_t>(names.size()),
                         names.empty() ? nullptr : names.data()});
  }
  op->info = {sizeof(feign_op_info),
              0,
              op->name.c_str(),
              name_.c_str(),
              kind,
              result_kind,
              static_cast<uint32_t>(op->infos.size()),
              sizeof(feign_arg_info),
              op->infos.empty() ? nullptr : op->infos.data()};
  ops_[number - 1] = std::move(op);
}

const feign_layer& OwnLayer::layer() {
  pointers_.clear();
  for (const auto& op : ops_) pointers_.push_back(op ? &op->info : nullptr);
  layer_ = {sizeof(feign_layer), static_cast<uint32_t>(pointers_.size()), name_.c_str(),
            pointers_.data()};
  return layer_;
}

std::string text_of(const feign_layer& layer) {
  std::string out = std::string("layer\t") + layer.name + "\n";
  const auto numbers = [&](std::initializer_list<uint64_t> list) {
    for (const uint64_t n : list) out += "\t" + std::to_string(n);
    out += "\n";
  };
  for (uint32_t i = 0; i < layer.op_count; ++i) {
    const feign_op_info* op = layer.ops[i];
    if (op == nullptr) continue;
    out += "op\t" + std::to_string(i + 1) + "\t" + op->name;
    numbers({op->kind, op->result_kind});
    const auto* row = reinterpret_cast<const char*>(op->args);
    for (uint32_t a = 0; a < op->arg_count; ++a, row += op->arg_stride) {
      const auto& arg = *reinterpret_cast<const feign_arg_info*>(row);
      out += std::string("arg\t") + (arg.name != nullptr ? arg.name : "");
      numbers({arg.type, arg.slot, arg.index});
      for (uint32_t n = 0; n < arg.name_count; ++n) {
        out += std::string("name\t") + arg.names[n].name;
        numbers({arg.names[n].value});
      }
    }
  }
  return out;
}

namespace {

struct Line {
  std::vector<std::string_view> words;
  bool bad = false;
  explicit Line(std::string_view text) {
    while (true) {
      const size_t tab = text.find('\t');
      words.push_back(text.substr(0, tab));
      if (tab == std::string_view::npos) return;
      text.remove_prefix(tab + 1);
    }
  }
  uint64_t number(size_t i, uint64_t most) {
    uint64_t value = 0;
    if (i >= words.size()) {
      bad = true;
      return 0;
    }
    bad |= !to_number(words[i], value) || value > most;
    return value;
  }
};

}  // namespace

Result<std::vector<std::unique_ptr<OwnLayer>>> read_layers(std::string_view text,
                                                           const std::string& file) {
  constexpr uint64_t kMostOps = 4095;
  std::vector<std::unique_ptr<OwnLayer>> out;
  struct {
    uint32_t number = 0, kind = 0, result = 0;
    std::string name;
    std::vector<OwnLayer::Arg> args;
  } op;
  const auto done = [&] {
    if (op.number != 0)
      out.back()->add(op.number, std::move(op.name), op.kind, op.result, std::move(op.args));
    op = {};
  };
  size_t at = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++at;
    Line line(whole);
    const std::string_view what = line.words[0];
    const std::string name(
        line.words.size() > 1 ? line.words[what == "op" ? 2 % line.words.size() : 1] : "");
    if (what == "layer" && line.words.size() == 2 && !name.empty()) {
      done();
      out.push_back(std::make_unique<OwnLayer>(name));
    } else if (what == "op" && line.words.size() == 5 && !out.empty()) {
      done();
      op.number = static_cast<uint32_t>(line.number(1, kMostOps));
      op.name = name;
      op.kind = static_cast<uint32_t>(line.number(3, FEIGN_KIND_PROCESS));
      op.result = static_cast<uint32_t>(line.number(4, FEIGN_RESULT_SUCCESS));
      line.bad |= op.number == 0 || name.empty();
    } else if (what == "arg" && line.words.size() == 5 && op.number != 0) {
      op.args.push_back({name,
                         static_cast<uint32_t>(line.number(2, FEIGN_ARG_LIST)),
                         static_cast<uint32_t>(line.number(3, FEIGN_SLOT_VALUE)),
                         static_cast<uint32_t>(line.number(4, 1023)),
                         {}});
    } else if (what == "name" && line.words.size() == 3 && !op.args.empty()) {
      op.args.back().names.emplace_back(name, line.number(2, UINT64_MAX));
    } else {
      line.bad = true;
    }
    if (line.bad)
      return Error(FEIGN_ERR_ARGUMENT, file + ":" + std::to_string(at) + ": \"" +
                                           std::string(whole.substr(0, 80)) +
                                           "\": want a line that describes a layer");
  }
  done();
  return out;
}

}  // namespace feign
