// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/impairments.h"

namespace covey::sim {

uint64_t Impairments::Add(const Impairment& impairment) {
  impairments_[next_id_] = impairment;
  return next_id_++;
}

Impairment Impairments::Sum(const Impairment& base, HostId from, HostId to) const {
  Impairment sum = base;
  for (const auto& [id, one] : impairments_) {
    if (one.from.value_or(from) != from || one.to.value_or(to) != to) continue;
    sum.delay += one.delay;
    sum.jitter += one.jitter;
    sum.loss += one.loss;
    sum.retry += one.retry;
    sum.corruption += one.corruption;
    if (one.bits_per_second > 0) sum.bits_per_second = one.bits_per_second;
  }
  return sum;
}

}  // namespace covey::sim
