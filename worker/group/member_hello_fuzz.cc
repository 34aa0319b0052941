// SPDX-License-Identifier: Apache-2.0
// What members of a group say when they meet.
#include "worker/group/member_hello.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "common/net/frame_checksum.h"

namespace covey {
namespace {

constexpr uint32_t kGroupSize = 3;

std::string WordsOf(const std::vector<worker::MemberHello>& hellos) {
  std::vector<const worker::MemberHello*> pointers;
  for (const worker::MemberHello& hello : hellos) pointers.push_back(&hello);
  Message message;
  worker::WriteHellos(pointers, message);
  return std::string(FuzzText(message.frames[0].bytes()));
}

absl::StatusOr<std::vector<worker::MemberHello>> Read(std::span<const uint8_t> words) {
  Message message;
  message.frames.push_back(Buffer::CopyOf(words));
  SetFrameChecksums(message);
  return worker::ReadHellos(message, kGroupSize);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  worker::MemberState state{.finished = Step(9), .interrupted = true, .known_places = 77};
  state.round_trips.push_back({.round_trip_seconds = 0.5});
  state.progress.norm = worker::GradientNorm{.step = Step(9), .norm = 3};
  state.progress.buckets.push_back(
      {.finished = Step(9), .pulls = 2, .waits_for_pull = true, .learned = Step(8)});
  return {WordsOf({{.rank = 1, .said = worker::MemberDistances{0.5f, 0, 2}}}),
          WordsOf({{.rank = 0, .said = state}, {.rank = 2, .said = worker::MemberState()}})};
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto hellos = Read(input);
  if (!hellos.ok()) return false;
  size_t bytes_max = 0;
  for (const worker::MemberHello& hello : *hellos) {
    COVEY_CHECK(hello.rank < kGroupSize);
    bytes_max += worker::EncodedBytesMax(hello);
  }
  const std::string once = WordsOf(*hellos);
  COVEY_CHECK(once.size() <= bytes_max + 16);
  const auto again = Read({reinterpret_cast<const uint8_t*>(once.data()), once.size()});
  COVEY_CHECK(again.ok());
  COVEY_CHECK(WordsOf(*again) == once);
  return true;
}

}  // namespace covey
