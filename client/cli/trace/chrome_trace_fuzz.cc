// SPDX-License-Identifier: Apache-2.0
// Files for `covey trace --check`.
#include "client/cli/trace/chrome_trace.h"

#include <string>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      R"([{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"a"}},)"
      R"({"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"b"}},)"
      R"({"ph":"X","cat":"c","name":"d","pid":1,"tid":2,"ts":1.5,"dur":2.250},)"
      R"({"ph":"b","cat":"c","name":"d","id":"7f","pid":1,"tid":2,"ts":3},)"
      R"({"ph":"e","cat":"c","name":"d","id":"7f","pid":1,"tid":2,"ts":4},)",
      R"({"traceEvents":[{"ph":"s","cat":"m","name":"m","id":"1","pid":1,"tid":2,"ts":-5},)"
      R"({"ph":"f","bp":"e","cat":"m","name":"m","id":"1","pid":1,"tid":2,"ts":6}]})",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const cli::TraceCheck check = cli::CheckChromeTrace(std::string(FuzzText(input)));
  COVEY_CHECK(check.problems.size() <= cli::kProblemsMax);
  for (const std::string& problem : check.problems) COVEY_CHECK(!problem.empty());
  return check.problems.empty() || !absl::StartsWith(check.problems[0], "it is no JSON");
}

}  // namespace covey
