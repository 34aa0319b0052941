// SPDX-License-Identifier: Apache-2.0
#include "common/net/seal/message_sealer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/net/seal/sealed_head.h"

namespace covey {
namespace {

SealedHead HeadOf(const Message& message, size_t envelope_bytes) {
  return {.sender = message.from(),
          .receiver = message.to(),
          .frames = message.frames.size(),
          .envelope_bytes = envelope_bytes};
}

}  // namespace

size_t MessageSealer::HeadBytes(const Message& message, size_t plain_head_bytes) {
  return HeadOf(message, plain_head_bytes - kWirePreludeBytes).bytes();
}

absl::Status MessageSealer::Seal(const Message& message, std::span<uint8_t> head,
                                 std::span<const std::span<uint8_t>> frames) {
  COVEY_CHECK(frames.size() == message.frames.size());
  Refresh();
  const NodeId self = keys_->self();
  if (self == NodeId() || message.from() != Address{self, loop_}) {
    return absl::FailedPreconditionError(absl::StrCat(
        "message of node ", message.from().node.value(), ", loop ", message.from().loop,
        ", to be sealed by loop ", loop_, " of node ", self.value()));
  }
  COVEY_ASSIGN_OR_RETURN(Receiver* const receiver, ReceiverAt(message.to()));
  SealedHead fields = HeadOf(message, static_cast<size_t>(message.envelope.GetCachedSize()));
  fields.number = receiver->next++;
  WriteSealedHead(fields, head);
  PartCipher& cipher = receiver->cipher;
  bool done = true;
  for (size_t i = 0; i < frames.size(); ++i) {
    COVEY_CHECK(frames[i].size() == message.frames[i].size());
    done = done && cipher.Seal(FrameNumber(fields, i), {}, message.frames[i].bytes(),
                               frames[i].data(), TagAt(head, fields.frame_tag_offset(i)));
  }
  const std::span<uint8_t> envelope = head.subspan(fields.envelope_offset());
  message.envelope.SerializeWithCachedSizesToArray(envelope.data());
  done = done && cipher.Seal(EnvelopeNumber(fields), head.first(fields.envelope_tag_offset()),
                             envelope, envelope.data(), TagAt(head, fields.envelope_tag_offset()));
  return done ? absl::OkStatus() : absl::InternalError("OpenSSL does not seal a message");
}

void MessageSealer::Refresh() {
  const uint64_t changes = keys_->changes();
  if (changes == changes_) return;
  changes_ = changes;
  for (auto it = receivers_.begin(); it != receivers_.end();) {
    if (keys_->Knows(*it->second.peer)) {
      ++it;
      continue;
    }
    first_number_ = std::max(first_number_, it->second.next);
    it = receivers_.erase(it);
  }
}

absl::StatusOr<MessageSealer::Receiver*> MessageSealer::ReceiverAt(const Address& address) {
  const auto found = receivers_.find(address);
  if (found != receivers_.end()) {
    Receiver& receiver = found->second;
    const uint64_t generation = GenerationOf(receiver.next);
    if (generation != receiver.generation) {
      COVEY_ASSIGN_OR_RETURN(
          receiver.cipher, MakeCipher(PartCipher::Use::kSeal, receiver.peer->pair,
                                      keys_->To(*receiver.peer, loop_, address.loop), generation));
      receiver.generation = generation;
    }
    return &receiver;
  }
  COVEY_ASSIGN_OR_RETURN(auto peer, keys_->Find(address.node));
  const uint64_t generation = GenerationOf(first_number_);
  COVEY_ASSIGN_OR_RETURN(PartCipher cipher,
                         MakeCipher(PartCipher::Use::kSeal, peer->pair,
                                    keys_->To(*peer, loop_, address.loop), generation));
  return &receivers_
              .emplace(address, Receiver{.peer = std::move(peer),
                                         .next = first_number_,
                                         .generation = generation,
                                         .cipher = std::move(cipher)})
              .first->second;
}

}  // namespace covey
