// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/forged_messages.h"

#include "absl/strings/str_cat.h"

namespace covey::sim {
namespace {

// Nothing: the message is none between the replicas of a shard.
std::optional<ShardId> ShardOf(const proto::Envelope& envelope) {
  const auto shard_of = [](const proto::ChainPosition& chain) {
    return ShardId{TableId(chain.table()), ShardIndex(chain.shard())};
  };
  if (envelope.has_replicate_request()) return shard_of(envelope.replicate_request().chain());
  if (envelope.has_replicate_reply()) return shard_of(envelope.replicate_reply().chain());
  if (envelope.has_replica_piece()) return shard_of(envelope.replica_piece().chain());
  return std::nullopt;
}

}  // namespace

void ForgedMessages::OnForged(absl::Time, absl::string_view receiver, const Message& message) {
  const std::optional<ShardId> shard = ShardOf(message.envelope);
  before_ = shard ? look_(receiver, message.to().loop, *shard) : std::nullopt;
}

void ForgedMessages::OnForgedReceived(absl::Time, absl::string_view receiver,
                                      const Message& message) {
  const std::optional<ShardId> shard = ShardOf(message.envelope);
  if (!shard || !before_) return;
  const std::optional<Taken> after = look_(receiver, message.to().loop, *shard);
  if (after == before_) return;
  violations_.Add("forged_messages",
                  absl::StrCat(receiver, " believed what node ", message.from().node.value(),
                               " has forged about table ", shard->table.value(), " shard ",
                               shard->index.value(), ": it had record ", before_->index,
                               ", and has ", after ? after->index : 0));
}

void ForgedMessages::OnAnswerToForger(absl::Time, const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  if (!envelope.has_push_reply() || !StatusOf(message).ok() || envelope.push_reply().duplicate()) {
    return;
  }
  violations_.Add("forged_messages",
                  absl::StrCat("node ", message.from().node.value(), " took a push that node ",
                               message.to().node.value(), " has forged"));
}

}  // namespace covey::sim
