// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/applied_once.h"

namespace covey::sim {

void AppliedOnce::OnSend(absl::Time, const Message& message) {
  const auto reply = ReadShardReply(message);
  // A push that is not durable yet may be lost with its server; the next server then takes it as
  // new.
  if (!reply || reply->push == nullptr || !reply->push->durable()) return;
  const proto::PushId& id = reply->push->id();
  const bool is_group = id.producer_kind() == proto::PushId::GROUP;
  Push& push = pushes_[{reply->history, id.producer_kind(), id.producer(),
                        is_group ? 0 : id.producer_incarnation(), id.sequence()}];
  const uint64_t version = reply->push->applied_version();
  const std::pair<uint64_t, uint64_t> request{message.to().node.value(),
                                              message.envelope.header().request_id()};
  if ((push.version != 0 && push.version != version) ||
      (push.answered_as_new && push.answered_as_new != request && !reply->push->duplicate())) {
    violations_.Add("applied_once",
                    absl::StrCat("shard ", id.shard(), " generation ", reply->history.generation,
                                 ": push ", id.sequence(), " of producer ", id.producer(),
                                 " was applied at version ", push.version, ", then at ", version));
  }
  push.version = version;
  if (!reply->push->duplicate()) push.answered_as_new = request;
}

}  // namespace covey::sim
