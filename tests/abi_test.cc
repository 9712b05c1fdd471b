// SPDX-License-Identifier: MIT
// The ABI as it was released: where every field of feign.h lies, what every constant is, that the
// header compiles in every language that it promises, and that a plug-in exports one symbol. A line
// here may be added with a minor version; one that has to be changed is a break of the ABI.
//
// C_COMPILER, CXX_COMPILER and INCLUDE_DIR are the build's; PLUGIN_DIR holds the plug-ins it built.
#include <feign.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct Fact {
  const char* what;
  size_t is, was;
};

#define SIZE(type, was) \
  { "sizeof " #type, sizeof(type), was }
#define FIELD(type, field, was) \
  { "offsetof " #type "." #field, offsetof(type, field), was }
#define CONSTANT(name, was) \
  { #name, static_cast < size_t>(static_cast <long long>(name)), static_cast < size_t>(was) }

#if defined(__LP64__)
constexpr Fact kLayout[] = {
    SIZE(feign_activity, 128),
    FIELD(feign_activity, start_ns, 0),
    FIELD(feign_activity, duration_ns, 8),
    FIELD(feign_activity, offset, 16),
    FIELD(feign_activity, length, 24),
    FIELD(feign_activity, result, 32),
    FIELD(feign_activity, op, 40),
    FIELD(feign_activity, stream, 44),
    FIELD(feign_activity, handle, 48),
    FIELD(feign_activity, file, 52),
    FIELD(feign_activity, path, 56),
    FIELD(feign_activity, flags, 60),
    FIELD(feign_activity, id, 64),
    FIELD(feign_activity, compute_ns, 72),
    FIELD(feign_activity, sync_ns, 80),
    FIELD(feign_activity, values, 88),
    FIELD(feign_activity, value_count, 96),
    FIELD(feign_activity, path2, 100),
    FIELD(feign_activity, handle2, 104),
    FIELD(feign_activity, mode, 108),
    FIELD(feign_activity, place, 112),
    FIELD(feign_activity, marks, 120),
    FIELD(feign_activity, host, 124),
    SIZE(feign_stream_info, 48),
    FIELD(feign_stream_info, struct_size, 0),
    FIELD(feign_stream_info, id, 4),
    FIELD(feign_stream_info, host, 8),
    FIELD(feign_stream_info, rank, 12),
    FIELD(feign_stream_info, process, 16),
    FIELD(feign_stream_info, thread, 24),
    FIELD(feign_stream_info, parent, 32),
    FIELD(feign_stream_info, again, 36),
    FIELD(feign_stream_info, parent_id, 40),
    SIZE(feign_name, 16),
    FIELD(feign_name, name, 0),
    FIELD(feign_name, value, 8),
    SIZE(feign_arg_info, 32),
    FIELD(feign_arg_info, name, 0),
    FIELD(feign_arg_info, type, 8),
    FIELD(feign_arg_info, slot, 12),
    FIELD(feign_arg_info, index, 16),
    FIELD(feign_arg_info, name_count, 20),
    FIELD(feign_arg_info, names, 24),
    SIZE(feign_op_info, 48),
    FIELD(feign_op_info, struct_size, 0),
    FIELD(feign_op_info, id, 4),
    FIELD(feign_op_info, name, 8),
    FIELD(feign_op_info, layer, 16),
    FIELD(feign_op_info, kind, 24),
    FIELD(feign_op_info, result_kind, 28),
    FIELD(feign_op_info, arg_count, 32),
    FIELD(feign_op_info, arg_stride, 36),
    FIELD(feign_op_info, args, 40),
    SIZE(feign_layer, 24),
    FIELD(feign_layer, struct_size, 0),
    FIELD(feign_layer, op_count, 4),
    FIELD(feign_layer, name, 8),
    FIELD(feign_layer, ops, 16),
    SIZE(feign_sink, 32),
    FIELD(feign_sink, struct_size, 0),
    FIELD(feign_sink, ctx, 8),
    FIELD(feign_sink, make, 16),
    FIELD(feign_sink, emit, 24),
    SIZE(feign_window, 32),
    FIELD(feign_window, struct_size, 0),
    FIELD(feign_window, at_end, 4),
    FIELD(feign_window, items, 8),
    FIELD(feign_window, due, 16),
    FIELD(feign_window, count, 24),
    SIZE(feign_option, 56),
    FIELD(feign_option, name, 0),
    FIELD(feign_option, type, 8),
    FIELD(feign_option, offset, 12),
    FIELD(feign_option, fallback, 16),
    FIELD(feign_option, choices, 24),
    FIELD(feign_option, min, 32),
    FIELD(feign_option, max, 40),
    FIELD(feign_option, help, 48),
    SIZE(feign_provider, 40),
    FIELD(feign_provider, struct_size, 0),
    FIELD(feign_provider, reserved, 4),
    FIELD(feign_provider, create, 8),
    FIELD(feign_provider, next, 16),
    FIELD(feign_provider, destroy, 24),
    FIELD(feign_provider, probe, 32),
    SIZE(feign_modifier, 40),
    FIELD(feign_modifier, struct_size, 0),
    FIELD(feign_modifier, lookahead, 4),
    FIELD(feign_modifier, create, 8),
    FIELD(feign_modifier, process, 16),
    FIELD(feign_modifier, destroy, 24),
    FIELD(feign_modifier, lookahead_of, 32),
    SIZE(feign_outcome, 24),
    FIELD(feign_outcome, struct_size, 0),
    FIELD(feign_outcome, doing, 4),
    FIELD(feign_outcome, result, 8),
    FIELD(feign_outcome, why, 16),
    SIZE(feign_run, 80),
    FIELD(feign_run, struct_size, 0),
    FIELD(feign_run, root_fd, 4),
    FIELD(feign_run, root, 8),
    FIELD(feign_run, max_length, 16),
    FIELD(feign_run, max_bytes, 24),
    FIELD(feign_run, content, 32),
    FIELD(feign_run, rank, 40),
    FIELD(feign_run, ranks, 44),
    FIELD(feign_run, rank_of, 48),
    FIELD(feign_run, recorded_ranks, 56),
    FIELD(feign_run, room, 60),
    FIELD(feign_run, alone, 64),
    FIELD(feign_run, no_pauses, 68),
    FIELD(feign_run, common, 72),
    SIZE(feign_plan, 24),
    FIELD(feign_plan, struct_size, 0),
    FIELD(feign_plan, ctx, 8),
    FIELD(feign_plan, each, 16),
    SIZE(feign_ranks, 80),
    FIELD(feign_ranks, struct_size, 0),
    FIELD(feign_ranks, create, 8),
    FIELD(feign_ranks, who, 16),
    FIELD(feign_ranks, barrier, 24),
    FIELD(feign_ranks, send, 32),
    FIELD(feign_ranks, receive, 40),
    FIELD(feign_ranks, abort, 48),
    FIELD(feign_ranks, destroy, 56),
    FIELD(feign_ranks, share, 64),
    FIELD(feign_ranks, threads, 72),
    SIZE(feign_replayer, 56),
    FIELD(feign_replayer, struct_size, 0),
    FIELD(feign_replayer, needs_root, 4),
    FIELD(feign_replayer, layers, 8),
    FIELD(feign_replayer, create, 16),
    FIELD(feign_replayer, open_stream, 24),
    FIELD(feign_replayer, execute, 32),
    FIELD(feign_replayer, close_stream, 40),
    FIELD(feign_replayer, destroy, 48),
    SIZE(feign_writer, 48),
    FIELD(feign_writer, struct_size, 0),
    FIELD(feign_writer, reserved, 4),
    FIELD(feign_writer, create, 8),
    FIELD(feign_writer, write, 16),
    FIELD(feign_writer, finish, 24),
    FIELD(feign_writer, destroy, 32),
    FIELD(feign_writer, suffix, 40),
    SIZE(feign_component, 56),
    FIELD(feign_component, struct_size, 0),
    FIELD(feign_component, role, 4),
    FIELD(feign_component, name, 8),
    FIELD(feign_component, summary, 16),
    FIELD(feign_component, api, 24),
    FIELD(feign_component, options, 32),
    FIELD(feign_component, option_count, 40),
    FIELD(feign_component, option_stride, 44),
    FIELD(feign_component, options_size, 48),
    FIELD(feign_component, reserved, 52),
    SIZE(feign_plugin, 40),
    FIELD(feign_plugin, struct_size, 0),
    FIELD(feign_plugin, abi_minor, 4),
    FIELD(feign_plugin, name, 8),
    FIELD(feign_plugin, version, 16),
    FIELD(feign_plugin, license, 24),
    FIELD(feign_plugin, components, 32),
    SIZE(Statistic, 24),
    FIELD(Statistic, start, 0),
    FIELD(Statistic, end, 8),
    FIELD(Statistic, status, 16),
    SIZE(Activity, 128),
    FIELD(Activity, status, 0),
    FIELD(Activity, provider, 4),
    FIELD(Activity, offset, 8),
    FIELD(Activity, layer, 16),
    FIELD(Activity, size, 20),
    FIELD(Activity, data, 24),
    FIELD(Activity, stats, 32),
    FIELD(Activity, rank, 40),
    FIELD(Activity, op, 44),
    FIELD(Activity, kind, 48),
    FIELD(Activity, path, 56),
    FIELD(Activity, path2, 64),
    FIELD(Activity, fd, 72),
    FIELD(Activity, flags, 76),
    FIELD(Activity, mode, 80),
    FIELD(Activity, position, 88),
    FIELD(Activity, length, 96),
    FIELD(Activity, result, 104),
    FIELD(Activity, start, 112),
    FIELD(Activity, duration, 120),
    SIZE(Plugin, 32),
    FIELD(Plugin, name, 0),
    FIELD(Plugin, version, 8),
    FIELD(Plugin, intents, 16),
    FIELD(Plugin, instance_id, 20),
    FIELD(Plugin, id, 24),
    SIZE(Layer, 16),
    FIELD(Layer, name, 0),
    FIELD(Layer, intents, 8),
    FIELD(Layer, id, 12),
    SIZE(feign_host, 128),
    FIELD(feign_host, struct_size, 0),
    FIELD(feign_host, abi_minor, 4),
    FIELD(feign_host, ctx, 8),
    FIELD(feign_host, log, 16),
    FIELD(feign_host, fail, 24),
    FIELD(feign_host, extension, 32),
    FIELD(feign_host, intern, 40),
    FIELD(feign_host, text, 48),
    FIELD(feign_host, set_values, 56),
    FIELD(feign_host, op, 64),
    FIELD(feign_host, op_info, 72),
    FIELD(feign_host, register_layer, 80),
    FIELD(feign_host, stream, 88),
    FIELD(feign_host, stream_info, 96),
    FIELD(feign_host, depend, 104),
    FIELD(feign_host, left_out, 112),
    FIELD(feign_host, merged, 120),
};

TEST(Abi, FieldsLieWhereTheyWereReleased) {
  for (const Fact& fact : kLayout) EXPECT_EQ(fact.is, fact.was) << fact.what;
}
#endif

constexpr Fact kConstants[] = {
    CONSTANT(FEIGN_OK, 0),
    CONSTANT(FEIGN_END, 1),
    CONSTANT(FEIGN_ERR_ARGUMENT, -1),
    CONSTANT(FEIGN_ERR_IO, -2),
    CONSTANT(FEIGN_ERR_NOMEM, -3),
    CONSTANT(FEIGN_ERR_UNSUPPORTED, -4),
    CONSTANT(FEIGN_ERR_PLUGIN, -5),
    CONSTANT(FEIGN_PROVIDER, 1),
    CONSTANT(FEIGN_FILTER, 2),
    CONSTANT(FEIGN_FILTER_CONTEXT, 4),
    CONSTANT(FEIGN_MUTATOR, 8),
    CONSTANT(FEIGN_MUTATOR_CONTEXT, 16),
    CONSTANT(FEIGN_WRITER, 32),
    CONSTANT(FEIGN_REPLAYER, 64),
    CONSTANT(FEIGN_DESTROYER, 128),
    CONSTANT(FEIGN_PRECREATOR, 512),
    CONSTANT(FEIGN_REPORTER, 16384),
    CONSTANT(FEIGN_MODIFIER, 65536),
    CONSTANT(FEIGN_RANKS, 131072),
    CONSTANT(FEIGN_KIND_OTHER, 0),
    CONSTANT(FEIGN_KIND_OPEN, 1),
    CONSTANT(FEIGN_KIND_CLOSE, 2),
    CONSTANT(FEIGN_KIND_READ, 3),
    CONSTANT(FEIGN_KIND_WRITE, 4),
    CONSTANT(FEIGN_KIND_SEEK, 5),
    CONSTANT(FEIGN_KIND_STAT, 6),
    CONSTANT(FEIGN_KIND_LIST, 7),
    CONSTANT(FEIGN_KIND_CHANGE, 8),
    CONSTANT(FEIGN_KIND_SIZE, 9),
    CONSTANT(FEIGN_KIND_FLUSH, 10),
    CONSTANT(FEIGN_KIND_DUP, 11),
    CONSTANT(FEIGN_KIND_PROCESS, 12),
    CONSTANT(FEIGN_RESOLVED, 1),
    CONSTANT(FEIGN_INJECTED, 2),
    CONSTANT(FEIGN_LAST, 4),
    CONSTANT(FEIGN_CREATES, 8),
    CONSTANT(FEIGN_NOT_A_FILE, 16),
    CONSTANT(FEIGN_DIRECTORY, 32),
    CONSTANT(FEIGN_INHERITED, 64),
    CONSTANT(FEIGN_NO_RESULT, 128),
    CONSTANT(FEIGN_NOFOLLOW, 256),
    CONSTANT(FEIGN_SYMLINK, 512),
    CONSTANT(FEIGN_DEPENDS, 1024),
    CONSTANT(FEIGN_NO_STORAGE, 2048),
    CONSTANT(FEIGN_APPENDS, 4096),
    CONSTANT(FEIGN_BOTH_WAYS, 2097152),
    CONSTANT(FEIGN_ASLEEP, 4194304),
    CONSTANT(FEIGN_TOLD, 8388608),
    CONSTANT(FEIGN_COMPUTED, 0),
    CONSTANT(FEIGN_WAITED, 1),
    CONSTANT(FEIGN_SLEPT, 2),
    CONSTANT(FEIGN_SLOT_NONE, 0),
    CONSTANT(FEIGN_SLOT_HANDLE, 1),
    CONSTANT(FEIGN_SLOT_HANDLE2, 2),
    CONSTANT(FEIGN_SLOT_PATH, 3),
    CONSTANT(FEIGN_SLOT_PATH2, 4),
    CONSTANT(FEIGN_SLOT_OFFSET, 5),
    CONSTANT(FEIGN_SLOT_LENGTH, 6),
    CONSTANT(FEIGN_SLOT_FLAGS, 7),
    CONSTANT(FEIGN_SLOT_MODE, 8),
    CONSTANT(FEIGN_SLOT_VALUE, 9),
    CONSTANT(FEIGN_ARG_NUMBER, 0),
    CONSTANT(FEIGN_ARG_PATH, 1),
    CONSTANT(FEIGN_ARG_FD, 2),
    CONSTANT(FEIGN_ARG_FLAGS, 3),
    CONSTANT(FEIGN_ARG_MODE, 4),
    CONSTANT(FEIGN_ARG_BUFFER, 5),
    CONSTANT(FEIGN_ARG_STRING, 6),
    CONSTANT(FEIGN_ARG_LIST, 7),
    CONSTANT(FEIGN_RESULT_EXACT, 0),
    CONSTANT(FEIGN_RESULT_SUCCESS, 1),
    CONSTANT(FEIGN_LOG_ERROR, 0),
    CONSTANT(FEIGN_LOG_WARN, 1),
    CONSTANT(FEIGN_LOG_INFO, 2),
    CONSTANT(FEIGN_LOG_DEBUG, 3),
    CONSTANT(FEIGN_OPT_BOOL, 1),
    CONSTANT(FEIGN_OPT_UINT, 2),
    CONSTANT(FEIGN_OPT_SIZE, 3),
    CONSTANT(FEIGN_OPT_REAL, 4),
    CONSTANT(FEIGN_OPT_TEXT, 5),
    CONSTANT(FEIGN_OPT_ENUM, 6),
    CONSTANT(FEIGN_OPT_TEXTS, 7),
    CONSTANT(FEIGN_OPT_DURATION, 8),
    CONSTANT(FEIGN_DONE, 0),
    CONSTANT(FEIGN_EMULATED, 1),
    CONSTANT(FEIGN_SKIPPED, 2),
    CONSTANT(FEIGN_STATUS_NEW, 0),
    CONSTANT(FEIGN_STATUS_PREPROCESSED, 1),
    CONSTANT(FEIGN_STATUS_MUTATED, 2),
    CONSTANT(FEIGN_STATUS_READY, 3),
    CONSTANT(FEIGN_STATUS_REPLAYED, 4),
    CONSTANT(FEIGN_STATUS_DROPPED, 5),
    CONSTANT(FEIGN_STATUS_SKIP, 5619),
    CONSTANT(FEIGN_CWD, 4294967040),
    CONSTANT(FEIGN_ABI_MAJOR, 1),
    CONSTANT(FEIGN_ABI_MINOR, 0),
};

TEST(Abi, ConstantsAreWhatTheyWereReleasedAs) {
  for (const Fact& fact : kConstants) EXPECT_EQ(fact.is, fact.was) << fact.what;
}

TEST(Abi, HasComparesWithTheStructsOwnSize) {
  feign_modifier api{};
  api.struct_size = offsetof(feign_modifier, lookahead_of);

  EXPECT_TRUE(FEIGN_HAS(&api, destroy));
  EXPECT_FALSE(FEIGN_HAS(&api, lookahead_of));
}

TEST(Abi, DescriptorsArePlusOneSoThatZeroIsNone) {
  EXPECT_EQ(FEIGN_FD(0), 1u);
  EXPECT_EQ(FEIGN_FD(-1), 0u);
  EXPECT_EQ(FEIGN_AT_DEPTH(3), 3u << 24);
  EXPECT_EQ(FEIGN_DEPTH(FEIGN_AT_DEPTH(255) | FEIGN_APPENDS), 255u);
  EXPECT_EQ(FEIGN_UNKNOWN, 1ull << 63);
  EXPECT_EQ(FEIGN_FD_OF(FEIGN_FD(7)), 7);
}

TEST(Abi, PlacesHoldSourceAndLine) {
  const uint64_t place = FEIGN_PLACE(3, 123456789012);

  EXPECT_EQ(FEIGN_PLACE_SOURCE(place), 3u);
  EXPECT_EQ(FEIGN_PLACE_LINE(place), 123456789012u);
}

struct Language {
  const char* compiler;
  const char* option;
  const char* ending;
};
class Header : public ::testing::TestWithParam<Language> {};

// The exit status of a shell command; what it printed goes to `text`.
int run(const std::string& command, std::string& text) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  return pclose(pipe);
}

// A file of the test's own.
std::string source(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "feign-abi-" + std::to_string(getpid()) + name;
  std::ofstream(path) << text;
  return path;
}

TEST_P(Header, CompilesWithoutAWarning) {
  const Language& language = GetParam();
  // As a plug-in of the real form has it, of the short form, and twice.
  for (const char* before : {"", "#define FEIGN_NO_SHORT_FORM\n", "#define FEIGN_NO_ENTRY\n"}) {
    const std::string path =
        source(language.ending,
               std::string(before) + "#include <feign.h>\n#include <feign.h>\n" +
                   (language.ending == std::string(".cc") ? "#include <feign.hpp>\n" : "") +
                   "int has(const feign_host *h);\n"
                   "int has(const feign_host *h) { return FEIGN_HAS(h, log) + (int)FEIGN_CWD; }\n");
    std::string text;

    const int status =
        run(std::string(language.compiler) + " " + language.option +
                " -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I " INCLUDE_DIR " " + path,
            text);

    EXPECT_EQ(status, 0) << language.option << " " << before << text;
    std::filesystem::remove(path);
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, Header,
                         ::testing::Values(Language{C_COMPILER, "-std=c99", ".c"},
                                           Language{C_COMPILER, "-std=c11", ".c"},
                                           Language{CXX_COMPILER, "-std=c++17", ".cc"},
                                           Language{CXX_COMPILER, "-std=c++20", ".cc"}));

TEST(Abi, EachPluginOfOursExportsOneSymbol) {
  // Weak (V, W) and unique (u) symbols come from templates of the C++ library.
  const std::string strong = "ABCDGRST";
  size_t plugins = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLUGIN_DIR)) {
    if (entry.path().extension() != ".so") continue;
    ++plugins;
    std::string text;
    ASSERT_EQ(run("nm -D --defined-only '" + entry.path().string() + "'", text), 0) << text;
    std::vector<std::string> names;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      const size_t kind = line.find(' ');
      if (kind == std::string::npos || kind + 3 > line.size()) continue;
      const std::string name = line.substr(kind + 3);
      if (name.rfind("__odr_asan.", 0) == 0) continue;  // AddressSanitizer's own
      if (strong.find(line[kind + 1]) != std::string::npos) names.push_back(line.substr(kind + 3));
    }
    EXPECT_EQ(names, std::vector<std::string>{"feign_plugin_v1"}) << entry.path();
  }
  EXPECT_GT(plugins, 0u) << PLUGIN_DIR;
}

}  // namespace
