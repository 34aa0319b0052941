// SPDX-License-Identifier: Apache-2.0
#include "common/net/seal/sealed_head.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/net/little_endian.h"

namespace covey {
namespace {

constexpr size_t kSenderNodeOffset = 16;
constexpr size_t kSenderLoopOffset = 24;
constexpr size_t kReceiverLoopOffset = 28;
constexpr size_t kReceiverNodeOffset = 32;
constexpr size_t kNumberOffset = 40;
constexpr size_t kTagsOffset = 48;

}  // namespace

size_t SealedHead::frame_tag_offset(size_t frame) const {
  return kTagsOffset + frame * PartCipher::kTagBytes;
}

void WriteSealedHead(const SealedHead& head, std::span<uint8_t> to) {
  COVEY_CHECK(to.size() == head.bytes());
  WritePrelude({.sealed = true,
                .envelope_bytes = static_cast<uint32_t>(head.envelope_bytes),
                .last = static_cast<uint32_t>(head.frames)},
               to);
  StoreLittle(head.sender.node.value(), &to[kSenderNodeOffset]);
  StoreLittle(head.sender.loop, &to[kSenderLoopOffset]);
  StoreLittle(head.receiver.loop, &to[kReceiverLoopOffset]);
  StoreLittle(head.receiver.node.value(), &to[kReceiverNodeOffset]);
  StoreLittle(head.number, &to[kNumberOffset]);
}

absl::StatusOr<SealedHead> ReadSealedHead(std::span<const uint8_t> from, const WireLimits& limits) {
  COVEY_ASSIGN_OR_RETURN(const WirePrelude prelude, ReadPrelude(from, limits));
  if (!prelude.sealed) {
    return absl::FailedPreconditionError(
        "message is not sealed, and this job is secured; secure all processes of a job, or none");
  }
  if (prelude.last > limits.frames) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sealed message with ", prelude.last, " frames; at most ", limits.frames, " are allowed"));
  }
  SealedHead head = {.frames = prelude.last, .envelope_bytes = prelude.envelope_bytes};
  if (from.size() != head.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sealed head frame claims ", head.bytes(), " bytes and has ", from.size()));
  }
  head.sender = {NodeId(LoadLittle<uint64_t>(&from[kSenderNodeOffset])),
                 LoadLittle<uint32_t>(&from[kSenderLoopOffset])};
  head.receiver = {NodeId(LoadLittle<uint64_t>(&from[kReceiverNodeOffset])),
                   LoadLittle<uint32_t>(&from[kReceiverLoopOffset])};
  head.number = LoadLittle<uint64_t>(&from[kNumberOffset]);
  return head;
}

}  // namespace covey
