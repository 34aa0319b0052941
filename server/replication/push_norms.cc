// SPDX-License-Identifier: Apache-2.0
#include "server/replication/push_norms.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/status/status.h"
#include "common/base/check.h"

namespace covey::server {

namespace {

constexpr uint64_t kMeanOver = 8;

}  // namespace

bool IsNorm(float norm) { return std::isfinite(norm) && norm > 0; }

void PushNorms::Note(float norm, bool is_beyond) {
  COVEY_CHECK(IsNorm(norm));
  ++pushes_;
  const int64_t before = usual_bits_;
  const int64_t change = int64_t{std::bit_cast<uint32_t>(norm)} - before;
  const auto divisor = static_cast<int64_t>(std::min(pushes_, kMeanOver));
  usual_bits_ = static_cast<uint32_t>(before + change / divisor);
  beyond_ += is_beyond;
  beyond_in_row_ = is_beyond ? beyond_in_row_ + 1 : 0;
}

float PushNorms::usual() const { return std::bit_cast<float>(usual_bits_); }

proto::PushNorms PushNorms::ToProto() const {
  proto::PushNorms norms;
  norms.set_usual_bits(usual_bits_);
  norms.set_pushes(pushes_);
  norms.set_beyond(beyond_);
  norms.set_beyond_in_row(beyond_in_row_);
  return norms;
}

absl::StatusOr<PushNorms> PushNorms::FromProto(const proto::PushNorms& norms) {
  PushNorms known;
  known.usual_bits_ = norms.usual_bits();
  known.pushes_ = norms.pushes();
  known.beyond_ = norms.beyond();
  known.beyond_in_row_ = norms.beyond_in_row();
  const bool is_consistent = known.pushes_ > 0 && known.beyond_ <= known.pushes_ &&
                             known.beyond_in_row_ <= known.beyond_ && IsNorm(known.usual());
  if (is_consistent) return known;
  return absl::InvalidArgumentError("a producer's norms are none that pushes can have");
}

}  // namespace covey::server
