// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/all_reduce/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "common/base/status_macros.h"
#include "common/collective/part_range.h"
#include "worker/examples/choices.h"

namespace covey::all_reduce {
namespace {

// A prime, so that no division of the data coincides with it.
constexpr size_t kPeriod = 251;

// The terms of one member or, with several, their sums in rank order; they repeat after kPeriod
// elements, so checking costs one comparison per element.
std::vector<float> OnePeriod(uint32_t first_rank, uint32_t members) {
  std::vector<float> sums(kPeriod, 0);
  for (uint32_t rank = first_rank; rank < first_rank + members; ++rank) {
    for (size_t i = 0; i < kPeriod; ++i) sums[i] += Term(rank, i);
  }
  return sums;
}

void FillWithTerms(uint32_t rank, std::vector<float>& data) {
  const std::vector<float> terms = OnePeriod(rank, 1);
  for (size_t first = 0; first < data.size(); first += kPeriod) {
    const size_t count = std::min(kPeriod, data.size() - first);
    std::copy_n(terms.begin(), count, data.begin() + static_cast<ptrdiff_t>(first));
  }
}

}  // namespace

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(examples::InRange("--bytes", static_cast<double>(bytes), 1024, 1 << 30));
  COVEY_RETURN_IF_ERROR(
      examples::InRange("--compute-milliseconds", compute_milliseconds, 0, 60000));
  COVEY_RETURN_IF_ERROR(examples::InRange("--tensors", tensors, 1, 256));
  return examples::InRange("--repetitions", static_cast<double>(repetitions), 1, 1e6);
}

void Options::AddTo(ConfigFile& options) {
  options.Add("bytes", ConfigFile::Bytes{&bytes}, "size of the data on each member, as in 8MiB");
  options.Add("repetitions", &repetitions, "measured sums");
  options.Add("compute-milliseconds", &compute_milliseconds,
              "computation of each member while a sum is under way");
  options.Add("overlap", &overlap, "false: the sum begins when the computation has ended");
  options.Add("tensors", &tensors, "tensors that the data is divided into; each has its own sum");
  options.Add("at-once", &at_once, "false: tensors are summed one after another");
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
  const std::vector<float> expected = OnePeriod(0, members);
  double largest = 0;
  double error = 0;
  for (size_t i = 0, place = 0; i < sums.size(); ++i, place = (place + 1) % kPeriod) {
    const double off = std::abs(static_cast<double>(sums[i]) - expected[place]);
    if (std::isnan(off)) return std::numeric_limits<double>::infinity();
    error = std::max(error, off);
    largest = std::max(largest, std::abs(static_cast<double>(expected[place])));
  }
  return largest == 0 ? error : error / largest;
}

absl::StatusOr<Outcome> Measure(worker::Group& group, const Options& options,
                                const std::function<absl::Time()>& now,
                                const std::function<void()>& warm) {
  std::vector<float> data(options.bytes / sizeof(float));
  Outcome outcome;
  std::vector<double> seconds;
  for (uint64_t repetition = 0; repetition <= options.repetitions; ++repetition) {
    if (repetition == 1) warm();
    FillWithTerms(group.rank(), data);
    COVEY_RETURN_IF_ERROR(group.Barrier().Wait());
    const absl::Time start = now();
    const auto compute = [&] {
      while (now() - start < absl::Milliseconds(options.compute_milliseconds)) {
      }
    };
    if (!options.overlap) compute();
    std::vector<worker::Handle> sums;
    for (const PartRange& tensor : EvenParts(data.size(), options.tensors)) {
      if (!options.at_once && !sums.empty()) COVEY_RETURN_IF_ERROR(sums.back().Wait());
      sums.push_back(group.AllReduce(std::span(data).subspan(tensor.first, tensor.count)));
    }
    if (options.overlap) compute();
    for (worker::Handle& sum : sums) COVEY_RETURN_IF_ERROR(sum.Wait());
    // The first repetition meets cold connections and untouched memory.
    if (repetition > 0) seconds.push_back(absl::ToDoubleSeconds(now() - start));
    // A member that checks its sums must not take the processor from one that still adds.
    COVEY_RETURN_IF_ERROR(group.Barrier().Wait());
    outcome.error_max = std::max(outcome.error_max, ErrorOf(data, group.size()));
  }
  COVEY_RETURN_IF_ERROR(group.AllReduce(seconds).Wait());
  for (const double of_all : seconds) {
    outcome.durations.push_back(absl::Seconds(of_all / group.size()));
  }
  return outcome;
}

}  // namespace covey::all_reduce
