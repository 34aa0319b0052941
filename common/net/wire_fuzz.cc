// SPDX-License-Identifier: Apache-2.0
// Messages as they arrive at data ports. The first part of an input is a head frame, or an envelope
// around which a right head frame is made; the others are tensor frames.
#include "common/net/wire.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr WireLimits kLimits = {.envelope_bytes = 4096, .frame_bytes = 1024, .frames = 3};

Message SmallMessage() {
  Message message;
  message.set_to({NodeId(7), 1});
  message.envelope.mutable_header()->set_node(3);
  message.envelope.mutable_header()->set_incarnation(5);
  return message;
}

Buffer HeadAround(std::span<const uint8_t> envelope) {
  Buffer head = Buffer::Allocate(kWirePreludeBytes + envelope.size());
  const std::span<uint8_t> bytes = {head.MutableData(), head.size()};
  WritePrelude({.envelope_bytes = static_cast<uint32_t>(envelope.size()), .last = Crc32c(envelope)},
               bytes);
  std::copy(envelope.begin(), envelope.end(), bytes.begin() + kWirePreludeBytes);
  return head;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  Message push = SmallMessage();
  push.envelope.mutable_push_request()->mutable_id()->set_sequence(9);
  push.envelope.mutable_push_request()->set_samples(32);
  push.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>(12, 1)));
  Message slice = SmallMessage();
  slice.envelope.mutable_group_slice()->mutable_round();
  slice.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>(5, 2)));
  slice.frames.push_back(Buffer::CopyOf(std::vector<uint8_t>(300, 3)));
  Message pull = SmallMessage();
  pull.envelope.mutable_pull_request();
  pull.envelope.mutable_status()->set_message("some text");

  std::vector<std::string> seeds;
  for (const Message& message : {push, slice, pull}) {
    std::vector<std::string> whole;
    const std::vector<Buffer> frames = EncodeMessage(kLimits, message).value();
    for (const Buffer& frame : frames) {
      whole.emplace_back(FuzzText(frame.bytes()));
    }
    seeds.push_back(JoinFuzzParts(whole));
    whole[0].erase(0, kWirePreludeBytes);
    seeds.push_back(JoinFuzzParts(whole));
  }
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  std::vector<Buffer> frames = FuzzFrames(input, kLimits.frames + 2);
  if (frames.empty()) return false;
  if (frames[0].size() < 4 || std::memcmp(frames[0].data(), "CVEY", 4) != 0) {
    frames[0] = HeadAround(frames[0].bytes());
  }
  const auto message = DecodeMessage(frames, kLimits);
  if (!message.ok()) return false;
  COVEY_CHECK(IsOfDataPlane(message->envelope));

  // What was accepted can be sent on, and arrives as the same.
  const auto again = EncodeMessage(kLimits, *message);
  COVEY_CHECK(again.ok());
  const auto reread = DecodeMessage(*again, kLimits);
  COVEY_CHECK(reread.ok());
  COVEY_CHECK(reread->envelope.SerializeAsString() == message->envelope.SerializeAsString());
  COVEY_CHECK(reread->frames.size() == message->frames.size());
  return true;
}

}  // namespace covey
