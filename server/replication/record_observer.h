// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"

namespace covey::server {

// A record that a head has appended to its shard's history, and the content after it. Valid during
// the call in which it is given.
struct AppendedRecord {
  ShardId id;
  const proto::Table& table;  // as in the view
  const proto::Shard& shard;
  Epoch head_since;
  const ShardRecord& record;
  const Gradient& gradient;  // the record's, decoded
  const ShardContent& content;
};

// Sees all records that the heads of one loop append, in their order. Actor-confined.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;

  // Whether it keeps gradients beyond the call; they are then not in lent memory.
  virtual bool keeps_gradients() const = 0;
  virtual void OnAppended(absl::Time now, const AppendedRecord& appended) = 0;
};

}  // namespace covey::server
