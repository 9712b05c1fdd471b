// SPDX-License-Identifier: MIT
#include "cli/generate.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/program.h"

namespace feign {
namespace {

bool is_there(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// The generator, and the headers that what it makes is compiled with.
struct Generator {
  std::string script;
  std::vector<std::string> includes;
};

// Where it is installed, be it elsewhere than it was to be; else where it was built.
Result<Generator> find_generator() {
  std::vector<std::pair<std::string, std::string>> places;  // data, headers
  if (std::string above = own_program(); !above.empty()) {
    for (int i = 0; i < 2; ++i) above.resize(std::min(above.rfind('/'), above.size()));
    places.emplace_back(above + "/share/feign", above + "/include");
  }
  places.emplace_back(FEIGN_DATA_DIR, FEIGN_INCLUDE_DIR);
  for (const auto& [data, headers] : places)
    if (is_there(data + "/library.py") && is_there(headers + "/feign.h"))
      return Generator{data + "/library.py", {headers, headers + "/feign"}};
  const std::string source = FEIGN_SOURCE_DIR;
  if (is_there(source + "/layers/library.py"))
    return Generator{source + "/layers/library.py", {source + "/include", source + "/capture"}};
  std::string where;
  for (const auto& [data, headers] : places) where += (where.empty() ? "" : ", ") + data;
  return Error(FEIGN_ERR_UNSUPPORTED, "generate: library.py is neither in " + where + " nor in " +
                                          source + "/layers: install feign again");
}

}  // namespace

Result<int> generate_command(const GenerateOptions& o) {
  auto generator = find_generator();
  if (!generator) return std::move(generator.error());
  // -B: nothing is written beside the generator. -s: modules of the user's are none of its.
  std::vector<std::string> words = {"python3", "-B", "-s", generator->script, o.header};
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name + ("=" + value)});
  };
  option("--output", o.output);
  option("--name", o.name);
  option("--library", o.library);
  for (const std::string& folder : o.include) option("--include", folder);
  for (const std::string& folder : generator->includes) option("--feign-include", folder);
  if (o.quiet) words.emplace_back("--quiet");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) return errno_error("generate: fork", errno);
  if (child == 0) {
    execvp("python3", argv.data());
    _exit(errno == ENOENT ? 127 : 126);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status))
    return Error(FEIGN_ERR_IO, "generate: python3: signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127)
    return Error(FEIGN_ERR_UNSUPPORTED,
                 "generate: python3 is not in $PATH: the generator is a program in Python (Debian, "
                 "Ubuntu: apt install python3)");
  return WEXITSTATUS(status) == 0 ? 0 : 2;
}

}  // namespace feign
