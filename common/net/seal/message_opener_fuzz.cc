// SPDX-License-Identifier: Apache-2.0
// Sealed messages. An input has a first part; where that is not empty, it is a list of changes, the
// second part an envelope, and the others are frames: a node seals these, whatever they say, and
// then the changes are made to the head frame, each a place (two bytes) and what its byte is XORed
// with. Where the first part is empty, the others are the frames of a message from a stranger.
#include "common/net/seal/message_opener.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"
#include "common/net/seal/message_sealer.h"
#include "common/net/testing/secured_nodes.h"

namespace covey {
namespace {

constexpr Address kAlice = {NodeId(11), 1};
constexpr Address kBob = {NodeId(12), 3};
constexpr Incarnation kIncarnation = Incarnation(99);
constexpr size_t kChangeBytes = 3;
// The first part of an input without changes.
constexpr char kNoChanges[] = "-";

// The two nodes and their keys are made once for all inputs, because making keys is slow. Each
// input gets a new opener of Bob's.
struct Nodes {
  SecuredNodes all;
  std::shared_ptr<DataKeys> alice = all.Join(kAlice.node, kIncarnation);
  std::shared_ptr<DataKeys> bob = all.Join(kBob.node, kIncarnation);
};
Nodes& TheNodes() {
  static Nodes nodes;
  return nodes;
}

std::string EnvelopeOf(NodeId from, Incarnation incarnation, uint32_t loop) {
  proto::Envelope envelope;
  envelope.mutable_header()->set_node(from.value());
  envelope.mutable_header()->set_incarnation(incarnation.value());
  envelope.set_from_loop(loop);
  envelope.set_to_node(kBob.node.value());
  envelope.set_to_loop(kBob.loop);
  envelope.mutable_push_request()->mutable_id()->set_sequence(5);
  return envelope.SerializeAsString();
}

// What Alice's transport sends for such a message; nothing if it sends none.
std::optional<SealedMessage> SealedByAlice(std::span<const uint8_t> envelope,
                                           std::span<const uint8_t> frames) {
  Message message;
  if (!message.envelope.ParseFromArray(envelope.data(), static_cast<int>(envelope.size()))) {
    return std::nullopt;
  }
  for (Buffer& frame : FuzzFrames(frames, 3)) message.frames.push_back(std::move(frame));
  const absl::StatusOr<size_t> plain = PrepareHead({}, message);
  if (!plain.ok()) return std::nullopt;
  SealedMessage sealed{.head = Buffer::Allocate(MessageSealer::HeadBytes(message, *plain))};
  std::vector<std::span<uint8_t>> to;
  for (const Buffer& frame : message.frames) {
    sealed.frames.push_back(Buffer::Allocate(frame.size()));
    to.emplace_back(sealed.frames.back().MutableData(), frame.size());
  }
  MessageSealer sealer(TheNodes().alice, kAlice.loop);
  const absl::Status status =
      sealer.Seal(message, {sealed.head.MutableData(), sealed.head.size()}, to);
  return status.ok() ? std::optional(std::move(sealed)) : std::nullopt;
}

// Whether a byte is another one now.
bool Change(std::span<const uint8_t> changes, SealedMessage& sealed) {
  const std::vector<uint8_t> before(sealed.head.bytes().begin(), sealed.head.bytes().end());
  for (; changes.size() >= kChangeBytes; changes = changes.subspan(kChangeBytes)) {
    const size_t place = changes[0] | changes[1] << 8;
    if (place < sealed.head.size()) sealed.head.MutableData()[place] ^= changes[2];
  }
  return std::memcmp(before.data(), sealed.head.data(), before.size()) != 0;
}

absl::StatusOr<Message> OpenByBob(SealedMessage& sealed) {
  MessageOpener opener(TheNodes().bob, kBob.loop, {});
  const auto head = opener.ReadHead(sealed);
  if (!head.ok()) return head.status();
  return opener.Open(*head, sealed);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string honest = EnvelopeOf(kAlice.node, kIncarnation, kAlice.loop);
  return {JoinFuzzParts({kNoChanges, honest}),
          JoinFuzzParts({kNoChanges, honest, "a frame", std::string(70, 'x')})};
}

bool FuzzOne(std::span<const uint8_t> input) {
  const std::span<const uint8_t> changes = TakeFuzzPart(input);
  if (changes.empty()) {
    std::vector<Buffer> frames = FuzzFrames(input, 4);
    if (frames.empty()) return false;
    SealedMessage sealed{.head = std::move(frames[0])};
    for (size_t i = 1; i < frames.size(); ++i) sealed.frames.push_back(std::move(frames[i]));
    COVEY_CHECK(!OpenByBob(sealed).ok());
    return false;
  }
  const std::span<const uint8_t> envelope = TakeFuzzPart(input);
  std::optional<SealedMessage> sealed = SealedByAlice(envelope, input);
  if (!sealed) return false;
  const bool changed = Change(changes, *sealed);
  const auto message = OpenByBob(*sealed);
  if (!message.ok()) return false;
  COVEY_CHECK(!changed);
  COVEY_CHECK(message->from() == kAlice && message->to() == kBob);
  COVEY_CHECK(message->incarnation() == kIncarnation);
  COVEY_CHECK(IsOfDataPlane(message->envelope));
  return true;
}

}  // namespace covey
