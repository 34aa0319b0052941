// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/all_reduce/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/status_macros.h"
#include "worker/examples/choices.h"

namespace covey::all_reduce {
namespace {

// A prime, so that no division of the data coincides with it.
constexpr size_t kPeriod = 251;

}  // namespace

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(examples::InRange("--bytes", static_cast<double>(bytes), 1024, 1 << 30));
  return examples::InRange("--repetitions", static_cast<double>(repetitions), 1, 1e6);
}

void Options::AddTo(ConfigFile& options) {
  options.Add("bytes", ConfigFile::Bytes{&bytes}, "size of the data on each member, as in 8MiB");
  options.Add("repetitions", &repetitions, "measured sums");
}

absl::Duration Outcome::Median() const {
  std::vector<absl::Duration> sorted = durations;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? absl::ZeroDuration() : sorted[sorted.size() / 2];
}

float Term(uint32_t rank, size_t i) {
  return static_cast<float>((i + 17 * static_cast<size_t>(rank)) % kPeriod) - 100;
}

double ErrorOf(const std::vector<float>& sums, uint32_t members) {
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    float expected = 0;
    for (uint32_t rank = 0; rank < members; ++rank) expected += Term(rank, i);
    const double off = std::abs(static_cast<double>(sums[i]) - expected);
    if (std::isnan(off)) return std::numeric_limits<double>::infinity();
    error = std::max(error, off);
    largest = std::max(largest, std::abs(static_cast<double>(expected)));
  }
  return largest == 0 ? error : error / largest;
}

absl::StatusOr<Outcome> Measure(worker::Group& group, const Options& options,
                                const std::function<absl::Time()>& now,
                                const std::function<void()>& warm) {
  std::vector<float> data(options.bytes / sizeof(float));
  Outcome outcome;
  for (uint64_t repetition = 0; repetition <= options.repetitions; ++repetition) {
    if (repetition == 1) warm();
    for (size_t i = 0; i < data.size(); ++i) data[i] = Term(group.rank(), i);
    COVEY_RETURN_IF_ERROR(group.Barrier().Wait());
    const absl::Time start = now();
    COVEY_RETURN_IF_ERROR(group.AllReduce(data).Wait());
    // The first repetition meets cold connections and untouched memory.
    if (repetition > 0) outcome.durations.push_back(now() - start);
    // A member that checks its sums must not take the processor from one that still adds.
    COVEY_RETURN_IF_ERROR(group.Barrier().Wait());
    outcome.error_max = std::max(outcome.error_max, ErrorOf(data, group.size()));
  }
  return outcome;
}

}  // namespace covey::all_reduce
