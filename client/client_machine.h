#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/operation.h"
#include "client/server_window.h"
#include "client/undurable_pushes.h"
#include "common/base/buffer.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/net/round_trip.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The data-plane half of a client: cuts operations into one request per shard, routes them by view,
// keeps within a budget of bytes on the wire and within what each server allows, and repeats a
// request under the same identity until it is answered or its deadline has passed.
//
// One request:
//
//   waiting ──credit──▶ on the wire ──answer──▶ finished ──frames released──▶ gone
//      ▲                  │   │  ▲
//      │                  │   └──┘ no answer in time: asked again, of a push without the bytes
//      └── backing off ◀──┘ UNAVAILABLE, RESOURCE_EXHAUSTED, DATA_LOSS, FAILED_PRECONDITION;
//                           another head (at once)
//
// A push that a server has received without its being durable yet is finished, and kept
// (undurable_pushes.h) until the server says that it is durable.
//
// Invariants:
// 1. Bytes on the wire never exceed the budget, nor those to one server loop its window
//    (server_window.h), except for one request alone.
// 2. Requests to one loop leave in the order of their operations, except that a push, and a pull of
//    who pushed, waits until the shard's head has what is kept of the same producer's earlier ones.
// 3. A push keeps its push id for ever.
// 4. An operation is done only when no frame of its gradient is referenced any more.
// 5. Versions never go back: once an answer has shown a version of a shard, the answers to requests
//    that leave later show no older one of the same generation. Such requests ask for it, and an
//    older answer (of a head that was replaced and does not know it) is asked for again.
// 6. Values are copied out only when they equal their checksum; else they are asked for again.
//
// Actor-confined. Deterministic in its options.
class ClientMachine {
 public:
  struct Options {
    Incarnation incarnation;
    size_t bytes_in_flight_max = 0;  // 0 = kClientBytesInFlightDefault
    // An unanswered request is repeated after so long, or twice what the server's answers take if
    // that is more; then after twice, four times … as long.
    absl::Duration retry_after = absl::Seconds(1);
    absl::Duration retry_after_longest = absl::Seconds(8);
    uint64_t seed = 0;
    // Told of each push that had been received and is lost; for the log. Null = nobody.
    std::function<void(const absl::Status&)> push_lost;
  };

  // Since the start.
  struct Counters {
    uint64_t repeats = 0;           // requests, with their bytes or without
    uint64_t refusals = 0;          // RESOURCE_EXHAUSTED
    uint64_t damaged = 0;           // frames that differed from their checksum, here or at a server
    uint64_t outdated_answers = 0;  // of an older version or generation than was known here
    uint64_t lost_pushes = 0;       // received, and never durable
  };
  using Flushed = std::function<void(absl::Time, const absl::Status&, Outbox&)>;

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

  enum class FlushScope {
    kAll,       // every push that was started before
    kReceived,  // those of them that a server has received: does not wait for answers
  };
  // Calls `done` once, when every push that was started before is over, and durable if it was
  // received. DATA_LOSS: since the last flush pushes were lost that a server had received (its
  // shard's content was lost, or the push was refused to the new head); names one. ABORTED: the same,
  // or perhaps they count: this node is taken for dead, or its group has a newer generation, and it is
  // told no more. DEADLINE_EXCEEDED: names a push that is left, its shard and server.
  void Flush(absl::Time now, FlushScope scope, absl::Time deadline, Flushed done, Outbox& outbox);

  // Ends every operation with `status` (their memory is released first), forgets the pushes that
  // are kept, and ends every flush.
  void FailAll(absl::Time now, const absl::Status& status, Outbox& outbox);
  // Ends the operations of one group with `status`.
  void FailGroup(absl::Time now, GroupId group, const absl::Status& status, Outbox& outbox);

  // True when the message was an answer for this machine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return next_wake_; }

  size_t operations() const { return operations_.size(); }
  size_t bytes_in_flight() const { return bytes_in_flight_; }
  // Pushes that were received and are not durable yet, and the memory they take.
  size_t undurable_pushes() const { return kept_.pushes().size(); }
  size_t undurable_bytes() const { return kept_.bytes(); }
  const Counters& counters() const { return counters_; }

 private:
  struct ActiveOperation;
  struct Request;
  // A server's data loop.
  struct Peer {
    ServerWindow window;
    RoundTrip round_trip;
    std::map<uint64_t, Request*> waiting;  // by request id, so in the order of their operations
  };
  // What answers have shown of a shard.
  struct Seen {
    uint64_t generation = 0;
    Version version;
    Version values;  // of the values last copied out
  };
  struct FlushWait {
    uint64_t before_operation = 0;
    uint64_t before_request = 0;
    absl::Time deadline;
    Flushed done;
  };

  // Sending; client_sending.cc.
  Peer& PeerAt(const Address& address);
  // Puts a request, not on the wire, where it waits for its shard's present head.
  void Enqueue(absl::Time now, Request& request, Outbox& outbox);
  // Takes it from where it is; it is backing off then.
  void Withdraw(Request& request);
  void Pump(absl::Time now, Outbox& outbox);
  Request* NextToSend();
  // The first that is not held back; null when there is none.
  Request* FirstOf(const Peer& peer) const;
  bool FitsBudget(size_t bytes) const;
  // Precondition: on the wire; kUnanswered: for so long that it is asked after.
  enum class Try { kNew, kUnanswered };
  void Transmit(absl::Time now, Request& request, Try which, Outbox& outbox);
  proto::PushRequest PushBody(const Request& request) const;
  void FillReadBound(const Request& request, proto::ReadBound& bound) const;
  void RouteTo(const Address& peer, Outbox& outbox);
  void FollowRoutes(Outbox& outbox);
  void FollowHead(absl::Time now, Request& request);

  // Answers; client_answers.cc.
  void Answer(absl::Time now, Request& request, const Message& reply, Outbox& outbox);
  // OK, or why the answer is of no use and must be asked for again.
  absl::Status CheckAnswer(const Request& request, const Message& reply,
                           const proto::ShardState& state);
  void BackOff(absl::Time now, Request& request, const Message& reply, absl::Status why);
  absl::Duration RefusedFor(int refusals, const Message& reply);
  void NoteSeen(const Request& request, const proto::ShardState& state);

  // Until pushes are durable; client_durability.cc.
  void KeepUndurable(absl::Time now, Request& request, const Address& receiver);
  void SendKept(absl::Time now, Outbox& outbox);
  void AnswerKept(absl::Time now, UndurablePushes::Push& push, const Message& reply);
  // A group's new generation goes on with its steps, so what the one before pushed is the new one's.
  void FollowGroup(UndurablePushes::Push& push) const;
  // Whether it was refused because a newer generation of its group had pushed, under which it may be
  // sent again; or because of a view that is still on its way here.
  bool WasOvertaken(const UndurablePushes::Push& push, const Message& reply) const;
  void DropKept(uint64_t request_id, absl::Status lost);
  // Ends an operation's wait for its pushes to be durable.
  void GiveUpDurability(ActiveOperation& active);
  // Ends what flushes wait for no longer.
  void CheckFlushes(absl::Time now, Outbox& outbox);
  // OK when everything before is durable; else DEADLINE_EXCEEDED, naming what is left.
  absl::Status LeftOf(const FlushWait& flush) const;

  void Finish(absl::Time now, Request& request, absl::Status status, Outbox& outbox);
  void MarkIfOver(ActiveOperation& active);
  // Frames that still wait for an unreachable peer are let go with the connection; the next send
  // opens it again.
  void LetFramesGo(const ActiveOperation& active, Outbox& outbox);
  // Finishes what is not finished yet.
  void FailRest(absl::Time now, ActiveOperation& active, const absl::Status& status,
                Outbox& outbox);
  void Retire(absl::Time now, Outbox& outbox);
  std::string NameOf(ShardId shard) const;
  absl::Status DeadlineStatus(const Request& request) const;

  const Options options_;
  const size_t budget_;
  uint64_t& next_request_id_;
  Random random_;
  NodeId self_;
  std::shared_ptr<const ClusterView> view_;
  std::map<Address, std::string> routes_;
  std::map<Address, Peer> peers_;
  // Last sequence given out, for pushes of this client, per shard.
  absl::flat_hash_map<ShardId, uint64_t> sequences_;
  absl::flat_hash_map<ShardId, Seen> seen_;

  std::map<uint64_t, std::unique_ptr<ActiveOperation>> operations_;  // by number, oldest first
  uint64_t next_operation_ = 1;
  std::map<uint64_t, Request*> by_request_id_;  // all that are not finished
  std::vector<uint64_t> finished_;              // operations whose frames may still be referenced
  UndurablePushes kept_;
  std::vector<FlushWait> flushes_;
  absl::Status lost_;  // the first since the last flush
  uint64_t lost_since_flush_ = 0;
  size_t bytes_in_flight_ = 0;
  Counters counters_;
  // Never later than the next thing to do; recomputed by Wake, so that a message costs no search.
  absl::Time next_wake_ = absl::InfiniteFuture();
};

}  // namespace covey::client
