// SPDX-License-Identifier: Apache-2.0
// Configuration files.
#include "common/runtime/config_file.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_file.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

// A program with an option of each type.
struct Options {
  Options() {
    file.Add("host", &host, "where to listen");
    file.Add("data-loops", &loops, "loops that serve shards");
    file.Add("drain", &drain, "longest wait at the end");
    file.Add("memory", ConfigFile::Bytes{&memory}, "most memory");
    file.Add("rate", &rate, "learning rate");
    file.Add("spin", &spin, "spin before blocking");
    file.Add("wanted-rank", &rank, "-1 = any");
    file.Add("labels", &labels, "words");
  }

  absl::StatusOr<ConfigFile::Outcome> Load(std::span<const uint8_t> text) {
    const FuzzFile input(text);
    return file.Load({absl::StrCat("--config=", input.path())},
                     [](const char*) -> const char* { return nullptr; });
  }

  std::string host = "127.0.0.1";
  uint32_t loops = 2;
  absl::Duration drain = absl::Seconds(5);
  uint64_t memory = 1 << 20;
  double rate = 0.5;
  bool spin = false;
  int32_t rank = -1;
  std::vector<std::string> labels;
  ConfigFile file{"covey_fuzz", "Tests."};
};

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      "",
      "host: 10.0.0.1\ndata_loops: 4  # flag --data-loops\ndrain: 1h30m\nmemory: 64KiB\n",
      "{rate: 1e-3, spin: true, wanted_rank: -1}",
      "labels: 'a,b'\nhost: \"x\\ty\"\nrate: 0.25\ndrain: 500ms\n",
      "host: &a name\nlabels: *a\n",
      "host: |\n  several\n  lines\nmemory: 18446744073709551615\n",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  Options options;
  const auto outcome = options.Load(input);
  if (!outcome.ok()) {
    COVEY_CHECK(outcome.status().code() == absl::StatusCode::kInvalidArgument);
    COVEY_CHECK(!outcome.status().message().empty());
    return false;
  }
  // What --print-config prints is a file with the same values.
  Options again;
  const std::string text = options.file.Print();
  COVEY_CHECK(again.Load({reinterpret_cast<const uint8_t*>(text.data()), text.size()}).ok());
  COVEY_CHECK(again.file.Values() == options.file.Values());
  return true;
}

}  // namespace covey
