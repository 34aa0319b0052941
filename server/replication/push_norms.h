// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/replication.pb.h"

namespace covey::server {

// What a shard knows of the norms of one producer's pushes: PushNorms of replication.proto. A
// value. Deterministic on every machine: the mean is one of whole numbers.
//
// The bits of a positive float32, read as a number, grow by 2^23 each time that the float doubles,
// and in between nearly as its logarithm does. So their mean is nearly that of the logarithms
// (within 6 %), and one push of a norm a million times as large moves it by a factor of six only.
class PushNorms {
 public:
  // A push of this norm, which is positive and finite. The usual norm is the mean of the first
  // pushes, and later a running mean over about eight.
  void Note(float norm, bool is_beyond);

  // 0 = there is none, before the first push.
  float usual() const;
  // Whether the usual norm rests on enough pushes to judge others by.
  bool is_known() const { return pushes_ >= 8; }
  uint64_t pushes() const { return pushes_; }
  // Of them, those beyond the gate: in all, and in a row up to now.
  uint64_t beyond() const { return beyond_; }
  uint64_t beyond_in_row() const { return beyond_in_row_; }

  proto::PushNorms ToProto() const;
  // INVALID_ARGUMENT: no shard has such norms.
  static absl::StatusOr<PushNorms> FromProto(const proto::PushNorms& norms);

  friend bool operator==(const PushNorms&, const PushNorms&) = default;

 private:
  uint32_t usual_bits_ = 0;
  uint64_t pushes_ = 0;
  uint64_t beyond_ = 0;
  uint64_t beyond_in_row_ = 0;
};

// Whether a push can have this norm: it is positive and finite.
bool IsNorm(float norm);

}  // namespace covey::server
