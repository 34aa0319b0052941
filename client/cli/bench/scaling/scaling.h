// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::cli {

// A benchmark of scaling: the same program with some numbers of workers. A value.
struct ScalingPlan {
  // Weak: each worker has `batch` samples per step, so that all of them have more together. Strong:
  // all workers have `batch` samples per step together, so that each has less.
  enum class Kind { kWeak, kStrong };
  Kind kind = Kind::kWeak;
  // Growing. The first number is the baseline.
  std::vector<uint32_t> workers = {1, 2, 4};
  uint64_t batch = 64;
  // The path, then its arguments, in which "{batch}" stands for the samples of a step of all
  // workers, and "{worker_batch}" for those of one worker.
  std::vector<std::string> program;

  // INVALID_ARGUMENT: no program, or nothing in its arguments says how many samples a step has;
  // numbers that do not grow; a batch of 0, or too large; or strong scaling with a batch that
  // cannot be divided evenly.
  absl::Status Validate() const;
  // Samples of a step of all workers.
  uint64_t BatchOf(uint32_t workers) const;
  // The program with its arguments for this many workers. Precondition: Validate().ok().
  std::vector<std::string> ProgramFor(uint32_t workers) const;
};

// What one number of workers has reached.
struct ScalingRow {
  uint32_t workers = 0;
  // Samples per second: one per repetition.
  std::vector<double> repetitions;
};

// The rate in the result of a program; see docs/OPERATIONS.md. INVALID_ARGUMENT: it names none
// above 0.
absl::StatusOr<double> RateIn(const std::string& result);

// "weak", "strong".
const char* NameOf(ScalingPlan::Kind kind);

// Speed-up: the median rate divided by the baseline's. Efficiency: the rate per worker divided by
// the baseline's rate per worker; 1 = perfect, for both kinds. Pure. Precondition: one row for each
// of the first entries of plan.workers, none without repetitions.
std::string ScalingAsJson(const ScalingPlan& plan, const std::vector<ScalingRow>& rows,
                          uint32_t cores);
// The same as a table, then lines that name the baseline, and that the machine has fewer cores than
// some run had workers.
std::string ScalingAsTable(const ScalingPlan& plan, const std::vector<ScalingRow>& rows,
                           uint32_t cores);

}  // namespace covey::cli
