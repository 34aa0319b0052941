// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/initialize/one_origin.h"

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

float OneOrigin::NewNumber() {
  const float number = static_cast<float>(numbers_.size() + 1);
  numbers_.insert(number);
  return number;
}

void OneOrigin::NoteGiven(float number) {
  given_.insert(number);
  if (given_.size() > 1) violations_.Add(kInitialize, "two calls have given the values");
  if (shown_ && *shown_ != number) {
    violations_.Add(kInitialize, absl::StrCat("a call was told that it gave ", number,
                                              ", and the tables show ", *shown_));
  }
}

void OneOrigin::Check(std::span<const float> values) {
  for (const float value : values) {
    if (!shown_ && numbers_.contains(value)) {
      shown_ = value;
      for (const float given : given_) NoteGiven(given);
    }
    if (shown_ == value) continue;
    violations_.Add(kInitialize, absl::StrCat("a value of ", value, " is shown; ",
                                              shown_ ? absl::StrCat("before it was ", *shown_)
                                                     : std::string("no call gave that")));
    return;
  }
}

void OneOrigin::OnSend(absl::Time, const Message& message) {
  const auto reply = ReadShardReply(message);
  if (reply) Check(reply->values);
}

}  // namespace covey::sim
