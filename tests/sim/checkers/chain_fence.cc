// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/chain_fence.h"

#include "absl/strings/str_cat.h"

namespace covey::sim {
namespace {

// Null: the message cannot change a shard's content.
const proto::ChainPosition* ChainOf(const proto::Envelope& envelope) {
  if (envelope.has_replicate_request()) return &envelope.replicate_request().chain();
  if (envelope.has_replica_piece()) return &envelope.replica_piece().chain();
  return nullptr;
}

ShardId ShardOf(const proto::ChainPosition& chain) {
  return {TableId(chain.table()), ShardIndex(chain.shard())};
}

}  // namespace

void ChainFence::OnReceive(absl::Time, absl::string_view receiver, const Message& message) {
  const proto::ChainPosition* chain = ChainOf(message.envelope);
  before_ = chain == nullptr ? std::nullopt : look_(receiver, message.to().loop, ShardOf(*chain));
}

void ChainFence::OnReceived(absl::Time, absl::string_view receiver, const Message& message) {
  const proto::ChainPosition* chain = ChainOf(message.envelope);
  if (chain == nullptr || !before_) return;
  const bool is_own =
      chain->generation() == before_->generation && chain->chain_epoch() == before_->chain_epoch;
  const std::optional<Held> after = look_(receiver, message.to().loop, ShardOf(*chain));
  if (is_own || !after || after->index == before_->index) return;
  violations_.Add(
      "chain_fence",
      absl::StrCat(receiver, " follows table ", chain->table(), " shard ", chain->shard(),
                   " generation ", before_->generation, " by the chain of epoch ",
                   before_->chain_epoch, ", and took record ", after->index, " of generation ",
                   chain->generation(), " by that of epoch ", chain->chain_epoch()));
}

}  // namespace covey::sim
