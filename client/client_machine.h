#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/operation.h"
#include "common/base/buffer.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The data-plane half of a client: cuts operations into one request per shard, routes them by view,
// keeps a budget of bytes on the wire, and repeats a request under the same identity until it is
// answered or its deadline has passed.
//
// One request:
//
//   waiting ──credit──▶ on the wire ──answer──▶ finished ──frames released──▶ gone
//      ▲                   │  │
//      └── UNAVAILABLE, RESOURCE_EXHAUSTED (back off), FAILED_PRECONDITION (newer view), no answer
//      in time
//
// Invariants: bytes on the wire never exceed the budget, except for one request alone; requests
// leave in the order of their operations; a push keeps its push id for ever; an operation is done
// only when no frame of its gradient is referenced any more.
//
// Actor-confined. Deterministic in its options.
class ClientMachine {
 public:
  struct Options {
    Incarnation incarnation;
    size_t bytes_in_flight_max = 0;  // 0 = kClientBytesInFlightDefault
    // An unanswered request is sent again after so long, then twice, four times … as long.
    absl::Duration retry_after = absl::Seconds(1);
    absl::Duration retry_after_longest = absl::Seconds(8);
    uint64_t seed = 0;
  };

  // `next_request_id` is shared with the other machines of the loop and outlives this one.
  ClientMachine(const Options& options, uint64_t& next_request_id);
  ~ClientMachine();

  // Requests follow the newest view; peers' routes are set from it. `self` is known after
  // registration.
  void SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
               Outbox& outbox);

  // NOT_FOUND: no such table in the view (yet); INVALID_ARGUMENT: spans do not fit the shards. Then
  // `done` is not called. Everything later arrives through `done`.
  absl::Status Start(absl::Time now, Operation operation, Outbox& outbox);

  // Ends every operation with `status` (their memory is released first).
  void FailAll(absl::Time now, const absl::Status& status, Outbox& outbox);
  // Ends the operations of one group with `status`.
  void FailGroup(absl::Time now, GroupId group, const absl::Status& status, Outbox& outbox);

  // True when the message was an answer for this machine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return next_wake_; }

  size_t operations() const { return operations_.size(); }
  size_t bytes_in_flight() const { return bytes_in_flight_; }

 private:
  struct ActiveOperation;
  struct Request;

  void Send(absl::Time now, Request& request, Outbox& outbox);
  void Pump(absl::Time now, Outbox& outbox);
  void Answer(absl::Time now, Request& request, const Message& reply, Outbox& outbox);
  void TakeValues(const Request& request, const Message& reply);
  void Finish(absl::Time now, Request& request, absl::Status status, Outbox& outbox);
  // Finishes what is not finished yet.
  void FailRest(absl::Time now, ActiveOperation& active, const absl::Status& status,
                Outbox& outbox);
  void Retire(absl::Time now, Outbox& outbox);
  void RouteTo(const Address& peer, Outbox& outbox);
  absl::Status DeadlineStatus(const Request& request) const;

  const Options options_;
  const size_t budget_;
  uint64_t& next_request_id_;
  Random random_;
  NodeId self_;
  std::shared_ptr<const ClusterView> view_;
  std::map<Address, std::string> routes_;
  // Last sequence given out, for pushes of this client; and the newest version seen, per shard.
  absl::flat_hash_map<ShardId, uint64_t> sequences_;
  absl::flat_hash_map<ShardId, Version> versions_;

  std::map<uint64_t, std::unique_ptr<ActiveOperation>> operations_;  // by number, oldest first
  uint64_t next_operation_ = 1;
  std::deque<Request*> waiting_;                // for credit, in order
  std::map<uint64_t, Request*> by_request_id_;  // on the wire or backing off
  std::vector<uint64_t> finished_;              // operations whose frames may still be referenced
  size_t bytes_in_flight_ = 0;
  // Never later than the next thing to do; recomputed by Wake, so that a message costs no search.
  absl::Time next_wake_ = absl::InfiniteFuture();
};

}  // namespace covey::client
