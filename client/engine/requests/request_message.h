// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "client/engine/requests/active_operations.h"
#include "client/engine/requests/shard_request.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/tensor/outer_product.h"

namespace covey::client {

// The process that sends requests, as servers know it.
struct Sender {
  NodeId node;
  Incarnation incarnation;
};

// The time until `deadline`, for a server.
uint32_t DeadlineMs(absl::Time now, absl::Time deadline);

// An empty message to the head that `request` goes to.
Message MessageTo(const ShardRequest& request, Epoch epoch);

// A push, without deadline and without a request for values. The identity depends only on the
// operation and the request's sequence, so it is the same in each retry.
proto::PushRequest PushBody(const Sender& sender, const ShardRequest& request);

// The part of a matrix that the request's shard holds, for a gradient in `factors`.
MatrixRange RangeOf(const Factors& factors, const ShardRequest& request);

// The frame to push: a slice of the caller's memory, or the bytes that are encoded once and kept
// for retries. Sets the request's checksum. Empty for functions, which are in the body.
Buffer GradientFrame(ShardRequest& request);

// The keys of a request to a sparse table.
const EncodedKeys& KeysOnWire(const ShardRequest& request);
// Adds their frame, if there are keys. Precondition: it has its checksum.
void AddKeys(const EncodedKeys& keys, Message& message);
// What a message takes to say which keys it is about: the bytes of their frame or of their name.
size_t KeyBytes(const Message& message);

// A request that its operation still waits for. Precondition: it has an owner.
enum class Attempt {
  kFirst,   // the first one to this head, or the first one after a refusal
  kRepeat,  // no reply came: a push is queried without its bytes, and asks for no values
};
Message RequestMessage(absl::Time now, const Sender& sender, Epoch epoch, Attempt attempt,
                       ShardRequest& request);

}  // namespace covey::client
