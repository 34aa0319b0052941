// SPDX-License-Identifier: Apache-2.0
#include "common/net/seal/message_opener.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

std::string NameOf(const Address& address) {
  return absl::StrCat("loop ", address.loop, " of node ", address.node.value());
}

// Where a frame may be opened in place. Empty frames have no memory.
std::span<uint8_t> Writable(Buffer& buffer) {
  if (buffer.empty()) return {};
  return {buffer.MutableData(), buffer.size()};
}

}  // namespace

absl::StatusOr<SealedHead> MessageOpener::ReadHead(const SealedMessage& sealed) const {
  COVEY_ASSIGN_OR_RETURN(const SealedHead head, ReadSealedHead(sealed.head.bytes(), limits_));
  if (head.frames != sealed.frames.size()) {
    return absl::InvalidArgumentError(absl::StrCat("sealed message claims ", head.frames,
                                                   " frames and has ", sealed.frames.size()));
  }
  return head;
}

absl::StatusOr<Message> MessageOpener::Open(const SealedHead& head, SealedMessage& sealed) {
  Refresh();
  const Address self = {keys_->self(), loop_};
  if (head.receiver.node != self.node) {
    return absl::AbortedError(
        absl::StrCat("message for ", NameOf(head.receiver), " at ", NameOf(self)));
  }
  if (head.receiver.loop != loop_ || head.sender.loop >= kEndpointsPerNodeMax) {
    return absl::PermissionDeniedError(absl::StrCat("message of ", NameOf(head.sender), " for ",
                                                    NameOf(head.receiver), " at ", NameOf(self)));
  }
  const auto found = senders_.find(head.sender);
  absl::StatusOr<Message> message =
      found == senders_.end() ? OpenFirst(head, sealed) : OpenOfKnown(found->second, head, sealed);
  if (message.ok()) message->connection = sealed.connection;
  return message;
}

void MessageOpener::Refresh() {
  const uint64_t changes = keys_->changes();
  if (changes == changes_) return;
  changes_ = changes;
  for (auto it = senders_.begin(); it != senders_.end();) {
    if (keys_->Knows(*it->second.peer)) {
      ++it;
    } else {
      it = senders_.erase(it);
    }
  }
}

absl::StatusOr<MessageOpener::Key> MessageOpener::MakeKey(const DataKeys::Peer& peer,
                                                          const SealedHead& head) const {
  const uint64_t generation = GenerationOf(head.number);
  COVEY_ASSIGN_OR_RETURN(PartCipher cipher,
                         MakeCipher(PartCipher::Use::kOpen, peer.pair,
                                    keys_->From(peer, head.sender.loop, loop_), generation));
  return Key{.generation = generation, .cipher = std::move(cipher)};
}

absl::StatusOr<Message> MessageOpener::OpenFirst(const SealedHead& head, SealedMessage& sealed) {
  auto peer = keys_->Find(head.sender.node);
  if (absl::IsNotFound(peer.status())) {
    return absl::UnavailableError(
        absl::StrCat("message of ", NameOf(head.sender), ", which is not in the view"));
  }
  if (!peer.ok()) return absl::FailedPreconditionError(peer.status().message());
  COVEY_ASSIGN_OR_RETURN(Key key, MakeKey(**peer, head));
  COVEY_ASSIGN_OR_RETURN(Message message, OpenWith(**peer, head, key.cipher, sealed));
  Sender sender{.peer = *std::move(peer), .newest = std::move(key)};
  sender.window.Note(head.number);
  senders_.emplace(head.sender, std::move(sender));
  return message;
}

absl::StatusOr<Message> MessageOpener::OpenOfKnown(Sender& sender, const SealedHead& head,
                                                   SealedMessage& sealed) const {
  if (!sender.window.IsNew(head.number)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "message ", head.number, " of ", NameOf(head.sender), " has come before, or is too late"));
  }
  const uint64_t generation = GenerationOf(head.number);
  Key* known = sender.newest.generation == generation ? &sender.newest : nullptr;
  if (known == nullptr && sender.other && sender.other->generation == generation) {
    known = &*sender.other;
  }
  std::optional<Key> made;
  if (known == nullptr) {
    COVEY_ASSIGN_OR_RETURN(made, MakeKey(*sender.peer, head));
    known = &*made;
  }
  COVEY_ASSIGN_OR_RETURN(Message message, OpenWith(*sender.peer, head, known->cipher, sealed));
  sender.window.Note(head.number);
  if (made) {
    if (generation > sender.newest.generation) std::swap(*made, sender.newest);
    sender.other = std::move(made);
  }
  return message;
}

// The envelope first: its tag covers the other tags, and it says which sizes the frames have.
absl::StatusOr<Message> MessageOpener::OpenWith(const DataKeys::Peer& peer, const SealedHead& head,
                                                PartCipher& cipher, SealedMessage& sealed) const {
  const std::span<uint8_t> bytes = Writable(sealed.head);
  const std::span<uint8_t> envelope = bytes.subspan(head.envelope_offset());
  if (!cipher.Open(EnvelopeNumber(head), bytes.first(head.envelope_tag_offset()), envelope,
                   TagAt(bytes, head.envelope_tag_offset()), envelope.data())) {
    return absl::UnauthenticatedError(
        absl::StrCat("message ", head.number, " of ", NameOf(head.sender),
                     " is not genuine: its seal does not fit the keys in the view"));
  }
  Message message;
  COVEY_RETURN_IF_ERROR(ParseEnvelope(envelope, message.envelope));
  if (message.from() != head.sender || message.to() != head.receiver ||
      message.incarnation() != peer.incarnation) {
    return absl::PermissionDeniedError(
        absl::StrCat("message ", head.number, " of ", NameOf(head.sender), " says it is from ",
                     NameOf(message.from()), " to ", NameOf(message.to())));
  }
  message.frames = std::move(sealed.frames);
  COVEY_RETURN_IF_ERROR(CheckFrames(message, limits_));
  for (size_t i = 0; i < message.frames.size(); ++i) {
    const std::span<uint8_t> frame = Writable(message.frames[i]);
    if (!cipher.Open(FrameNumber(head, i), {}, frame, TagAt(bytes, head.frame_tag_offset(i)),
                     frame.data())) {
      return absl::UnauthenticatedError(absl::StrCat("frame ", i, " of message ", head.number,
                                                     " of ", NameOf(head.sender),
                                                     " is not genuine"));
    }
  }
  return message;
}

}  // namespace covey
