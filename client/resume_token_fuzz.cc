// SPDX-License-Identifier: Apache-2.0
// Resume tokens, which programs keep as text.
#include "client/resume_token.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  client::ResumeToken token{.run = 0x7f3a, .table = TableId(4)};
  token.shards = {{.generation = 12, .version = Version(1045)},
                  {.generation = 12, .version = Version(1044)}};
  std::vector<std::string> seeds = {token.ToText()};
  token.shards.resize(1);
  token.run = 0;
  seeds.push_back(token.ToText());
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto token = client::ResumeToken::Parse(FuzzText(input));
  if (!token.ok()) {
    COVEY_CHECK(token.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  COVEY_CHECK(client::ResumeToken::Parse(token->ToText()).value() == *token);
  return true;
}

}  // namespace covey
