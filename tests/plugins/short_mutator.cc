// SPDX-License-Identifier: MIT
// A short-form filter, mutator, reporter and destroyer in C++, which init()'s arguments steer.
#include <feign.h>

#include <cstring>
#include <string>

static Plugin plugin = {"Mutator One", "2.1",
                        FEIGN_FILTER | FEIGN_MUTATOR | FEIGN_REPORTER | FEIGN_DESTROYER, 0, 0};
static std::string new_path;
static int reported = 0;

extern "C" FEIGN_EXPORT int reports() { return reported; }

int init(int argc, char* argv[]) {
  reported = 0;
  new_path = "/mutated";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "fail=yes") == 0) return 3;
    if (std::strncmp(argv[i], "path=", 5) == 0) new_path = argv[i] + 5;
  }
  if (argv[argc] != nullptr || std::strstr(argv[0], ".so") == nullptr) return 4;
  return feign_register_plugin(&plugin);
}

Activity* filter(Activity* a) { return a->length == 1 ? nullptr : a; }

Activity* mutate(Activity* a) {
  if (a->length == 2) {
    a->status = FEIGN_STATUS_SKIP;
    return a;
  }
  if (a->path != nullptr) a->path = new_path.c_str();
  a->position += 10;
  a->offset = 77;
  a->size *= 2;
  a->flags |= 1;
  a->mode = 0600;
  return a;
}

Activity* report(Activity* a) {
  ++reported;
  return a;
}

Activity* destroy(Activity*) { return nullptr; }
