#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_set.h"
#include "client/client_machine.h"
#include "common/base/buffer.h"
#include "common/cluster/limits.h"

namespace covey::client {

// The insides of a ClientMachine's operations; for its source files.

struct ClientMachine::ActiveOperation {
  uint64_t number = 0;
  Operation operation;
  // All of the gradient; each request's frame is a slice of it.
  Buffer gradient;
  std::vector<Request> requests;
  size_t unfinished = 0;
  // Pushes that were received and for which the operation waits until they are durable.
  size_t undurable = 0;
  absl::btree_set<Address> sent_to;
  bool marked_over = false;  // stands among those whose frames are waited for
  OperationResult result;

  bool over() const { return unfinished == 0 && undurable == 0; }
};

struct ClientMachine::Request {
  // Where it is; see the picture above ClientMachine.
  enum class Place { kWaiting, kOnWire, kBackingOff };

  ActiveOperation* owner = nullptr;
  ShardId shard;
  Buffer encoded;  // the gradient in the operation's format, unless that is float32
  std::optional<uint32_t> checksum;  // of the gradient as it travels
  size_t first_element = 0;          // within the operation's spans
  size_t element_count = 0;
  uint64_t request_id = 0;
  uint64_t sequence = 0;
  // Of the values that the gradient was computed on, as far as this client knows.
  Version base_version;
  uint64_t base_generation = 0;
  bool finished = false;
  Place place = Place::kBackingOff;
  // Of a push: the server has its bytes, or they are on their way, so that it is only asked after.
  bool asks = false;
  int tries = 0;
  int refusals = 0;
  absl::Time again = absl::InfiniteFuture();
  absl::Status last_refusal;
  // The head it waits for or was sent to, and the shard as it was then.
  Address peer;
  uint64_t generation = 0;
  uint64_t chain_epoch = 0;
  uint64_t window_number = 0;
  absl::Time first_sent;  // to that head
  // Newest version that this client had seen of the shard before; an answer must not be older.
  Version seen;

  bool pushes() const { return !owner->operation.gradient.empty(); }
  size_t value_bytes() const { return element_count * sizeof(float); }
  // Of whatever goes either way; what counts against the budget.
  size_t bytes() const;
  // The frame to push; its checksum is known afterwards.
  Buffer Gradient();
};

// For a request's deadline.
inline uint32_t Milliseconds(absl::Duration duration) {
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1,
                                                   absl::ToInt64Milliseconds(kBarrierMax)));
}

// Refused for now: to be asked again, of the same server or another.
inline bool IsForNow(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace covey::client
