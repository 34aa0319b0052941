// SPDX-License-Identifier: Apache-2.0
// A fuzz target under libFuzzer, which supplies main. --write-seeds=FOLDER writes the target's
// seeds there as files, for libFuzzer to go on from, and ends.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  covey::FuzzOne({bytes, size});
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  absl::string_view argument = *argc == 2 ? (*argv)[1] : "";
  if (!absl::ConsumePrefix(&argument, "--write-seeds=")) return 0;
  int number = 0;
  for (const std::string& seed : covey::FuzzSeeds()) {
    std::ofstream file(absl::StrCat(argument, "/seed-", number++), std::ios::binary);
    file << seed;
    if (!file.flush()) std::exit(2);
  }
  std::exit(0);
}
