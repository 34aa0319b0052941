// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {

// Members of a group that is left by some, and the means that their programs get.
class MeanGroup : public GroupWithLosses {
 public:
  MeanGroup(uint32_t workers, const Options& options) : GroupWithLosses(workers, options) {}

  // All members have the same mean, and it is that of all members at least: those that have died
  // since the step began may be included, each with all of its samples or not at all.
  void CheckMeans(uint64_t step) {
    CheckAllWell(step);
    for (const uint32_t rank : members()) {
      for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
        if (IsMean(fleet.values[{rank, t}], fleet.mean_samples[{rank, t}], step)) continue;
        violations.push_back(absl::StrCat("step ", step, ": tensor ", t, " of ", rank, " is ",
                                          fleet.values[{rank, t}][0], " over ",
                                          fleet.mean_samples[{rank, t}]));
      }
    }
  }

 private:
  bool IsMean(const std::vector<float>& values, uint64_t told, uint64_t step) {
    uint32_t alive = 0;
    for (const uint32_t rank : members()) alive |= 1u << rank;
    for (uint32_t set = 1; set < 1u << fleet.ring.size(); ++set) {
      if ((set & alive) != alive) continue;
      uint64_t samples = 0;
      float sum = 0;
      for (uint32_t rank = 0; rank < fleet.ring.size(); ++rank) {
        if ((set >> rank & 1) == 0) continue;
        samples += 1 + rank;
        sum -= static_cast<float>((1 + rank) * (1 + rank) * step);
      }
      if (samples == told && std::all_of(values.begin(), values.end(), [&](float value) {
            return value == sum / static_cast<float>(samples);
          })) {
        return true;
      }
    }
    return false;
  }
};

inline GroupWithLosses::Options MeanOptions(const Case& with, uint64_t seed) {
  GroupWithLosses::Options options = with.OptionsOf(seed);
  options.hybrid.synchronization = Synchronization::kProgram;
  // Another one in each step, for all tensors.
  options.gradient = [tensors = options.model.tables.size(),
                      calls = std::map<uint32_t, uint64_t>()](uint32_t rank) mutable {
    const uint64_t step = 1 + calls[rank]++ / tensors;
    return -static_cast<float>((1 + rank) * step);
  };
  return options;
}

}  // namespace covey::worker
