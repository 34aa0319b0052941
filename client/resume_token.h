// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/operation_result.h"
#include "common/cluster/ids.h"

namespace covey::client {

// How far a reader of a sparse table has come: from here a later one reads what has changed since
// (row_reader.h). A value; programs may keep its text.
struct ResumeToken {
  // ClusterView.run: a token of another run of the job says nothing about this one.
  uint64_t run = 0;
  TableId table;
  // Of each shard: everything up to this version has been read.
  std::vector<ShardVersion> shards;

  // "rows1:7f3a…:4:12.1045,12.1044": run, table, and generation and version of each shard.
  std::string ToText() const;
  // INVALID_ARGUMENT: it is no text of a token.
  static absl::StatusOr<ResumeToken> Parse(absl::string_view text);

  friend bool operator==(const ResumeToken&, const ResumeToken&) = default;
};

}  // namespace covey::client
