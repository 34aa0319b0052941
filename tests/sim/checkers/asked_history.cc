// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/asked_history.h"

#include "tests/sim/checkers/shard_reply.h"

namespace covey::sim {

void AskedHistory::OnSend(absl::Time, const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  const uint64_t request = envelope.header().request_id();
  if (envelope.has_push_request() || envelope.has_pull_request()) {
    asked_[{message.from().node.value(), request}].insert(
        envelope.has_push_request() ? envelope.push_request().shard_generation()
                                    : envelope.pull_request().shard_generation());
    return;
  }
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  const uint64_t asker = message.to().node.value();
  if (asked_[{asker, request}].count(reply->history.generation) > 0) return;
  violations_.Add("asked_history",
                  absl::StrCat("request ", request, " of node ", asker, " was answered by shard ",
                               reply->history.shard.index.value(), " generation ",
                               reply->history.generation, ", which it did not ask for"));
}

}  // namespace covey::sim
