// SPDX-License-Identifier: MIT
// usage: keep_large_test PLUGIN.SO
#define FEIGN_NO_ENTRY
#include <feign/harness.h>

#include <cstdio>

using feign_test::act;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const feign_component* component =
      feign_test::load_component(argv[1], "keep-large", FEIGN_MODIFIER);
  for (const size_t batch : {1, 2, 3, 64}) {
    feign_test::ModifierHarness h(component, {{"min-length", "100"}});

    const auto out =
        h.run({act("open"), act("read", 99), act("write", 100), act("fstat"), act("close")}, batch);

    const char* want[] = {"open", "write", "fstat", "close"};
    if (out.size() != 4 || h.dropped != 1) {
      fprintf(stderr, "batch %zu: %zu activities came out, want 4\n", batch, out.size());
      return 1;
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].op != want[i]) {
        fprintf(stderr, "batch %zu: %s at %zu, want %s\n", batch, out[i].op.c_str(), i, want[i]);
        return 1;
      }
  }
  return 0;
}
