#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/contract/read_gate.h"
#include "common/net/message.h"
#include "server/replication/producers.h"

namespace covey::server {

// An answer on its way to a reader, or waiting for the shard to be fresh enough.
struct PendingAnswer {
  // The request: a retry repeats all three.
  NodeId node;
  Incarnation incarnation;
  uint64_t request_id = 0;

  // Addressed, its body begun.
  Message reply;
  // What the reader asked for, and what that means under the contract in force.
  proto::ReadBound bound;
  ReadRequirement requirement;
  absl::Time deadline;
  bool wants_values = true;

  // Of an answer to a push.
  struct Push {
    PushKey key;
    Version base_version;
    bool duplicate = false;
  };
  std::optional<Push> push;
};

// To a push or a pull, before anything is known but the request.
PendingAnswer BeginAnswer(absl::Time now, const Message& request, const proto::ReadBound& bound,
                          uint32_t deadline_ms);

// Answers that wait, in order of arrival. Limits: kParkedPerShardMax.
//
// Actor-confined. Deterministic.
class ParkedAnswers {
 public:
  // A retry takes the place of the answer that waits for the same request. False when full; the
  // answer is untouched then.
  bool Park(PendingAnswer& answer);

  // Gives those that `wanted` names to `take`, in order of arrival. `take` must not park.
  void Take(absl::FunctionRef<bool(const PendingAnswer&)> wanted,
            absl::FunctionRef<void(PendingAnswer&)> take);

  void ForEach(absl::FunctionRef<void(PendingAnswer&)> change) {
    for (PendingAnswer& answer : answers_) change(answer);
  }

  // Earliest deadline; InfiniteFuture() when nothing waits.
  absl::Time next_deadline() const { return next_deadline_; }
  size_t size() const { return answers_.size(); }

 private:
  std::vector<PendingAnswer> answers_;
  absl::Time next_deadline_ = absl::InfiniteFuture();
};

}  // namespace covey::server
