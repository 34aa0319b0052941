// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "server/key_lists/key_lists.h"
#include "server/key_lists/listed_keys.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {

// The keys that a push or a pull of a sparse table is about: those that it brings, or those of an
// earlier request of its sender that it names. Lives as long as the call that handles the request.
// Actor-confined.
class RequestKeys {
 public:
  // All of them outlive this.
  RequestKeys(const Message& request, ShardId shard, KeyLists& lists);

  // Null: the request has no list.
  const proto::KeyList* list() const { return list_; }
  // Decodes and checks the keys, the first time, and keeps them if they have a name.
  // INVALID_ARGUMENT: the request has no list of keys of this shard. UNAVAILABLE: they did not
  // arrive as they were sent; or they are only named, and not known. Precondition: list().
  absl::StatusOr<std::shared_ptr<const ListedKeys>> Take(const SparseShard& shard);
  // Whether Take has failed because the keys are only named.
  bool are_unknown() const { return are_unknown_; }
  // Says in a reply what is kept, or unknown.
  void DescribeTo(Message& reply) const;

 private:
  absl::StatusOr<std::shared_ptr<const ListedKeys>> Find();
  absl::StatusOr<std::shared_ptr<const ListedKeys>> Decode(const SparseShard& shard);

  const Message& request_;
  const ShardId shard_;
  const ListOwner owner_;
  KeyLists& lists_;
  const proto::KeyList* list_ = nullptr;
  std::shared_ptr<const ListedKeys> taken_;
  bool are_unknown_ = false;
};

}  // namespace covey::server
