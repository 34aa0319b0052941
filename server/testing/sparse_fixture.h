// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/table/key_list.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {

// Makes the only table of the job sparse, with one shard.
inline void MakeSparse(TestJob& job, uint32_t width) {
  job.spec().clear_shape();
  job.spec().mutable_sparse()->set_width(width);
  job.view.mutable_tables(0)->mutable_shards(0)->set_element_count(kKeySlots);
}

using Keys = std::vector<uint64_t>;

// Turns a request of ShardDriver into one about rows. A push has its gradient already, in a row for
// each key.
inline Message OfRows(Message message, const Keys& keys) {
  EncodedKeys encoded = Encoded(keys);
  const bool pushes = message.envelope.has_push_request();
  *(pushes ? message.envelope.mutable_push_request()->mutable_keys()
           : message.envelope.mutable_pull_request()->mutable_keys()) = encoded.list;
  if (keys.empty()) {
    message.frames.clear();
    return message;
  }
  message.frames.insert(message.frames.begin(), encoded.frame);
  SetFrameChecksums(message);
  return message;
}

}  // namespace covey::server
