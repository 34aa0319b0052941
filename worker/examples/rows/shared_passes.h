// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/parameter_client.h"
#include "worker/examples/rows/tally.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey::examples {

// A pass that is over, by all workers together.
struct PassReport {
  uint64_t pass = 0;  // from 1
  uint64_t examples = 0;
  absl::Duration duration;
  // The mean over all batches of all workers.
  double loss = 0;
};

// "pass 2 of 5: loss 4.25, 209,472 questions in 3.1 s, 67,600 per second".
std::string DescribePass(const PassReport& report, uint64_t passes, absl::string_view examples);

// Divides passes over numbered examples among all workers of a job, which come, go and differ in
// speed, for programs whose parameters are rows of sparse tables. The members of a group take their
// steps together; their losses reach the scheduler, and so `covey status` and the report of `covey
// run`. One table of two elements adds up the losses of all groups.
//
// One per worker, which outlives it. Confined to the worker's thread.
class SharedPasses {
 public:
  // What a run needs from its caller.
  struct Surroundings {
    // Monotonic time.
    std::function<absl::Time()> now;
    // Called before each step; an error ends the run.
    std::function<absl::Status()> may_go_on;
  };
  struct Data {
    // Unique in the job.
    std::string name;
    uint64_t examples = 0;
    // Examples of a step of one worker.
    uint64_t batch = 0;
    uint64_t passes = 1;
    // Of the order of examples; 0 = their own order.
    uint64_t seed = 0;
  };
  // Takes the next examples, by number; may have none. When it returns, whatever earlier calls have
  // pushed has been applied. Returns the mean loss.
  using Step = std::function<absl::StatusOr<double>(std::span<const uint32_t>)>;

  // `name`: of the job's program; names its table of losses. The client outlives this, too.
  static absl::StatusOr<std::unique_ptr<SharedPasses>> Open(worker::Worker& worker,
                                                            client::ParameterClient& client,
                                                            absl::string_view name,
                                                            Surroundings surroundings);

  // Trains until all workers together have finished all passes. `pass_over` is called after each.
  absl::Status Train(const Data& data, const Step& step,
                     const std::function<void(const PassReport&)>& pass_over);
  // The same without losses: each example is visited once per pass.
  absl::Status Visit(const Data& data,
                     const std::function<absl::Status(std::span<const uint32_t>)>& visit);

 private:
  enum class Kind { kTraining, kVisit };

  SharedPasses(worker::Worker& worker, Tally losses, Surroundings surroundings)
      : worker_(worker), surroundings_(std::move(surroundings)), losses_(std::move(losses)) {}
  absl::Status Run(const Data& data, Kind kind, const Step& step,
                   const std::function<void(const PassReport&)>& pass_over);

  worker::Worker& worker_;
  const Surroundings surroundings_;
  // Over all steps of all groups: the sum of their mean losses, and their number. The step adds to
  // it; members read it each for itself, because one that joins is not at the end of a pass.
  Tally losses_;
  std::array<float, 2> values_ = {};
  std::array<float, 2> gradient_ = {};
  std::unique_ptr<worker::HybridStep> hybrid_;
};

}  // namespace covey::examples
