// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/initialize/one_origin.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// More than a run makes.
constexpr uint64_t kUpdatesMax = 1'000'000;

}  // namespace

float OneOrigin::NewNumber(Gives gives) {
  const float number = static_cast<float>(numbers_.size() + 1);
  numbers_.insert(number);
  if (gives == Gives::kState) with_state_.insert(number);
  return number;
}

OneOrigin::State OneOrigin::StateOf(float number) const {
  if (!with_state_.contains(number)) return {};
  const auto whole = static_cast<uint64_t>(number);
  return {.slot = number + 0.5f, .updates = 1000 * whole, .samples = 7000 * whole};
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

void OneOrigin::CheckSlot(std::span<const float> slot) {
  if (!shown_) return;
  const float expected = StateOf(*shown_).slot;
  const auto other =
      std::find_if(slot.begin(), slot.end(), [&](float element) { return element != expected; });
  if (other == slot.end()) return;
  violations_.Add(kInitialize, absl::StrCat("the tables show ", *shown_, ", and a slot has ",
                                            *other, " instead of ", expected));
}

void OneOrigin::OnSend(absl::Time, const Message& message) {
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  if (message.frames.size() != 2) return Check(reply->values);
  Check(message.frames[0].As<float>());
  CheckSlot(message.frames[1].As<float>());
  if (!shown_) return;
  const State given = StateOf(*shown_);
  const uint64_t updates = reply->state->version() - given.updates;
  const uint64_t samples = message.envelope.pull_reply().samples() - given.samples;
  // Far too many where one of them is below what was given.
  if (updates == samples && updates < kUpdatesMax) return;
  violations_.Add(kInitialize, absl::StrCat("the tables show ", *shown_, ", and version ",
                                            reply->state->version(), " after ",
                                            message.envelope.pull_reply().samples(), " samples"));
}

}  // namespace covey::sim
