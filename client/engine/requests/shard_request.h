// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/transitions.h"
#include "common/cluster/ids.h"
#include "common/table/key_list.h"
#include "proto/parameter.pb.h"

namespace covey::client {

struct ActiveOperation;

// One request to one shard: a push, a pull, or both in one round trip. This is the only record of a
// push, from its start until it is durable.
//
//                 retry_at          window, budget
//   kBackingOff ───────────▶ kQueued ──────────▶ kInFlight ──▶ kOver: values, a durable push, or an
//        ▲                      │                   │  │              error
//        └──────────────────────┴───────────────────┘  │
//              refused, or another head                │ a push was received and is not durable
//                                                      ▼
//                                                  kReceived ──▶ kOver: durable, or lost
//                                                   │     ▲
//                          another head, or refused │     │ received
//                                                   ▼     │
//                                       ┌──▶ kStranded    │
//             another head, or refused  │           │     │
//                                       │           ▼     │
//                                       ├─── kResending   │
//                                       │           │     │
//                                       │     reply ▼     │
//                                       └─── kUnconfirmed ┘
//
// The first three states wait for a reply (unanswered_requests.h). The operation of a request in
// the next four has been answered, or waits only for durability (undurable_pushes.h). Each state
// may end in kOver. Replies may be late: a first "received" leads from any of the first three
// states to kReceived, or to kStranded if its server is not the head any more; a late one of the
// head leads from kStranded to kReceived.
//
// Invariants, held by MoveTo and the two classes that call it (SendQueue, UndurablePushes):
// 1. A request moves only along this picture (Transitions).
// 2. It is in its head's queue exactly when kQueued.
// 3. Its bytes count against window and budget exactly when kInFlight or kResending, unless its
//    head has confirmed that it has them (query_only).
// 4. A push in kStranded, kResending or kUnconfirmed holds back later ones of its producer.
//
// Actor-confined; owned by the engine before the push is received and by UndurablePushes
// afterwards.
struct ShardRequest {
  enum class State : uint8_t {
    kBackingOff,   // until `retry_at`; then the shard's present head is chosen
    kQueued,       // in the queue of `head`
    kInFlight,     // sent, and not answered
    kReceived,     // `head` has the push; queried now and then whether it has become durable
    kStranded,     // the shard's present head may lack the push: its bytes must be sent again
    kResending,    // its bytes are in flight to `head` again
    kUnconfirmed,  // answered, but not whether `head` keeps it, as when its chain is slow
    kOver,
  };

  // The data from which a received push is resent, when its operation may have ended.
  struct Kept {
    proto::PushRequest body;  // wants no values
    EncodedKeys keys;         // of a push to a sparse table
    Buffer gradient;

    size_t bytes() const { return keys.frame.size() + gradient.size(); }
  };

  // The operation that waits for this request. Null: the operation has ended, and `kept->gradient`
  // is the client's own memory, or memory that the operation shared.
  ActiveOperation* owner = nullptr;

  // Constant after the start.
  absl::Time started;
  ShardId shard;
  GroupId producer;  // of a push: the group that it counts for; none = this client
  uint64_t request_id = 0;
  uint64_t sequence = 0;
  size_t first_element = 0;  // within the operation's spans
  size_t element_count = 0;
  bool pushes = false;
  // The version of the values that the gradient was computed on, as far as this client knows.
  Version base_version;
  uint64_t base_generation = 0;

  // The gradient on the wire.
  size_t terms = 0;  // of its factors, which are sent; 0 = it is sent as elements or rows
  Buffer encoded;  // in the operation's format, unless that is float32 without feedback or factors
  std::optional<uint32_t> checksum;
  size_t wire_bytes = 0;     // of the larger direction
  size_t counted_bytes = 0;  // of them, those that count against window and budget while in flight

  // The destination: the head that it waits for or was sent to, and the shard at that time.
  Address head;
  uint64_t generation = 0;
  uint64_t chain_epoch = 0;
  uint64_t window_number = 0;
  absl::Time first_sent;  // to that head
  // Newest version of the shard that this client had seen before; no older reply is accepted.
  Version version_floor;

  // Of a sparse table: the newest message has the name of its keys in their place.
  bool names_keys = false;

  // Retries.
  // Of a push before it is received: the head has its bytes, or they are in flight to it, so that a
  // repeat carries no bytes.
  bool query_only = false;
  int tries = 0;  // since the head or its chain changed, or since the push was received
  int refusals = 0;
  absl::Time retry_at = absl::InfiniteFuture();
  absl::Status last_refusal;

  std::unique_ptr<Kept> kept;  // from kReceived or kStranded on

  State state() const { return state_; }
  // The picture above as a table.
  static std::span<const Transition<State>> Transitions();
  // Precondition: the transition is legal.
  void MoveTo(State next);
  bool in_flight() const { return state_ == State::kInFlight || state_ == State::kResending; }

 private:
  State state_ = State::kBackingOff;
};

// "kInFlight", for messages of tests and checks.
absl::string_view NameOf(ShardRequest::State state);

// A refusal that a retry may mend, at the same server or another.
bool IsRetryable(const absl::Status& status);

}  // namespace covey::client
