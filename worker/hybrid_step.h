// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/handle.h"
#include "common/cluster/ids.h"
#include "proto/table.pb.h"
#include "worker/gradient_noise.h"
#include "worker/hybrid_options.h"
#include "worker/progress.h"
#include "worker/worker.h"

namespace covey::worker {

class StepSpans;
class StepTimer;

// Trains a model in hybrid mode: synchronous inside the group, under each table's contract between
// groups. One table per tensor; the optimizer runs on the servers. The communication of one tensor
// overlaps the computation of the next:
//
//   COVEY_ASSIGN_OR_RETURN(auto hybrid, HybridStep::Create(*worker, tensors));  // first values
//   while (training) {
//     for (layer, first to last) {
//       COVEY_RETURN_IF_ERROR(hybrid->Wait(layer));  // then compute with its values
//     }
//     COVEY_RETURN_IF_ERROR(hybrid->Begin(batch_size));
//     for (layer, last to first) {  // compute its mean gradient, then
//       COVEY_RETURN_IF_ERROR(hybrid->Submit(layer));
//     }
//     hybrid->Report(loss);
//   }
//   COVEY_RETURN_IF_ERROR(hybrid->Finish());
//
// Memory: from Submit until Wait returns, the tensor's gradient and values belong to the step.
// Errors are those of the group (group.h) and of pushes (client/parameter_client.h): NaN in a
// gradient, a member that gave up, a lost server. After an error the group can do nothing more.
// ABORTED: the scheduler's plan has no place for this worker any more, or it was declared dead; the
// group continues without it, and the program can end. CANCELLED: the same, because the worker was
// drained (Worker::RequestDrain, `covey drain`): the program should end with success.
//
// A group whose members change continues: the change happens between two steps, without a call. A
// group that loses a member continues without it, in the same step: Wait takes longer, and then has
// the step's values. With Synchronization::kDistributed the loss is an error instead. A late member
// may find that the group continued without its gradient, when the plan allows that (view.proto,
// Group).
//
// With Synchronization::kProgram the values of a step are the group's mean gradient, and the
// program updates its own parameters with it:
//
//   COVEY_RETURN_IF_ERROR(hybrid->Wait(layer));
//   if (hybrid->mean_samples(layer) > 0) optimizer.Update(layer, mean);  // the same on all members
//
// Thread-safety: one thread. The worker outlives it; one per worker. The destructor waits for the
// steps in flight.
class HybridStep {
 public:
  using Options = HybridOptions;
  struct Tensor {
    // Equal on all members; the first member that needs the table creates it.
    proto::TableSpec table;
    // As large as the table, and valid as long as the HybridStep. If the table's initializer is
    // GIVEN, it holds the values with which the table begins; those of the first member that comes
    // count, for all tables. With kProgram: the table's first values after Create, and the group's
    // mean gradient after each step, whatever the program writes there between steps.
    std::span<float> values;
    // The same, for a program whose gradients have a place of their own; empty for one that names
    // the memory when it submits. With kProgram it may be the memory of `values`.
    std::span<const float> gradient;
    // Multiplies the learning rate of the table's schedule; SetRateFactor changes it. From 0 to
    // kRateFactorMax (common/optimizer/learning_rate.h).
    double rate_factor = 1;
  };

  // Creates the tables and gets the initial values. All members call it with the same tensors in
  // the same order, and the same options. ALREADY_EXISTS: a table of that name exists with another
  // spec. INVALID_ARGUMENT: a span does not fit, a table is sparse, or the options and a table's
  // contract are incompatible. FAILED_PRECONDITION: with kProgram, the group has finished a step
  // without this member; the worker should be closed, because the group waits for it.
  // DEADLINE_EXCEEDED: the group has lost a member since Worker::Join, and the remaining ones have
  // not re-formed within form_deadline. CANCELLED: asked to leave. Where tables have the
  // initializer GIVEN also as ParameterClient::InitializeTables, with the worker's
  // operation_deadline for all values together.
  static absl::StatusOr<std::unique_ptr<HybridStep>> Create(Worker& worker,
                                                            std::vector<Tensor> tensors,
                                                            const Options& options = Options());
  ~HybridStep();
  HybridStep(const HybridStep&) = delete;
  HybridStep& operator=(const HybridStep&) = delete;

  // Begins the next step; this member's gradients will be means over `samples` examples, possibly
  // 0. A step in which no member has examples changes neither values nor the optimizer's state.
  // INVALID_ARGUMENT: a tensor of the previous step was not submitted.
  absl::Status Begin(uint64_t samples);
  // The tensor's gradient is final: call it once per tensor and step, in any order, preferably that
  // of the backward pass, last to first. Does not block. INVALID_ARGUMENT: the tensor was submitted
  // before, or not waited for since.
  absl::Status Submit(size_t tensor);
  // The same, with a gradient anywhere; as large as the table.
  absl::Status Submit(size_t tensor, std::span<const float> gradient);
  // Multiplies the learning rate of the tensor's table from the next submission on, for schedules
  // that the program computes. Where the members of a group give different factors, each part of
  // the tensor takes that of the member that answers for it; so all members give the same one, and
  // one that joins later begins with the present one. With `local` it is the inner optimizer's
  // rate. INVALID_ARGUMENT: no such tensor, or the factor is out of its range.
  absl::Status SetRateFactor(size_t tensor, double factor);
  // Blocks until the tensor has its new values; returns at once when no step is in flight. With
  // Options.lag 1 these are the values of the step before the one that was submitted last.
  absl::Status Wait(size_t tensor);
  // Like Wait, but gives up with DEADLINE_EXCEEDED after `timeout`; the step continues, and the
  // tensor has to be waited for again.
  absl::Status WaitFor(size_t tensor, absl::Duration timeout);
  // Whether the tensor was submitted, and its new values are not there yet. False for a tensor that
  // does not exist.
  bool in_flight(size_t tensor) const;
  // Waits for all tensors: afterwards they have the values of the last step, also with lag. Returns
  // the first error.
  absl::Status Finish();
  // Gets the newest values of all tensors: those of the servers or, where the members run the
  // optimizer, theirs. All members call it, between steps. Blocks. INVALID_ARGUMENT: with kProgram,
  // whose newest values are the program's.
  absl::Status Refresh();

  // With kProgram: the examples of all members behind the mean gradient that the tensor got last.
  // With 0 the mean is zero, and the program should update nothing. 0 before the first step, and
  // for a tensor that does not exist. Tensors of one step differ when a member was lost in it. Call
  // it after Wait.
  uint64_t mean_samples(size_t tensor) const;

  // The step that began last, as counted by the group. It equals this program's own count, unless
  // steps continued without its gradient, or it joined a running group. A program whose members
  // must all end with the same step uses this count. UNAVAILABLE: the worker is stopping.
  absl::StatusOr<uint64_t> step() const;
  // The norm of the group's mean gradient, before it was clipped, in the newest step in which all
  // tensors have been reduced: after Finish(), or after Wait for all tensors without lag, in the
  // step that was submitted last. Absent without Options.max_gradient_norm, and before the first
  // step. UNAVAILABLE: the worker is stopping.
  absl::StatusOr<std::optional<double>> gradient_norm() const;
  // With Options.measure_noise: the norms of the steps since the last call, in order. All members
  // get the same ones, with the same bits, and in a group of one, too, which shows no noise. After
  // Wait for all tensors without lag, the newest is that of the step submitted last, for which the
  // call waits a moment if need be; so members that call it after each step decide alike. With lag
  // they may be a step apart. A step in which the group is interrupted may be missing; the next one
  // then starts over. At most 1024: a program that calls it less often misses the oldest.
  // FAILED_PRECONDITION: measure_noise is off. UNAVAILABLE: the worker is stopping.
  absl::StatusOr<std::vector<GradientNorms>> TakeGradientNorms();
  // This member's samples of the next step, when the whole group's are `group_batch`: divided in
  // proportion to the scheduler's newest shares, evenly when there are none. Over all members they
  // add up to `group_batch`, except while a change of shares is in flight. That does no harm,
  // because gradients are weighted by samples. 0 when this worker is no longer in a group.
  // UNAVAILABLE: the worker is stopping.
  absl::StatusOr<uint64_t> SamplesFor(uint64_t group_batch) const;

  // Reports the last step's loss; heartbeats carry it to the scheduler, with the times since the
  // last report: waiting, divided into group and servers; input; and computation, which is the
  // rest. A step without examples has no loss: the loss of the previous step stays, and the step
  // counts no samples.
  void Report(std::optional<double> loss);
  absl::StatusOr<Progress> progress() const;

  // While it lives, the program's time counts as input, and not as computation. Around the reading
  // and preparing of samples:
  //
  //   {
  //     const HybridStep::InputTime input(*hybrid);
  //     batch = reader.Next();
  //   }
  //
  // One at a time. Cost: two readings of the clock.
  class InputTime {
   public:
    explicit InputTime(HybridStep& hybrid);
    ~InputTime();
    InputTime(const InputTime&) = delete;
    InputTime& operator=(const InputTime&) = delete;

   private:
    StepTimer& timer_;
    StepSpans& spans_;
  };

 private:
  struct State {
    Tensor tensor;
    Handle handle{client::OperationResult{}};
    bool submitted = true;  // in this step
    bool under_way = false;
    // The program's count of the step that it waits for, 0 = none; and the group's number of it,
    // which the loop writes.
    uint64_t own_step = 0;
    Step step;
    uint64_t mean_samples = 0;  // written by the loop
  };

  HybridStep(WorkerCore& core, const Options& options, std::vector<Tensor> tensors);
  absl::Status CreateTables();
  enum class Way { kSubmit, kPull, kFlush };
  void Start(size_t tensor, Way way, std::span<const float> gradient = {});
  absl::Status PullAll();
  absl::Status WaitForAll();

  WorkerCore& core_;
  const Options options_;
  std::vector<State> states_;
  uint64_t samples_ = 0;
  const std::unique_ptr<StepTimer> timer_;
  const std::unique_ptr<StepSpans> spans_;
};

}  // namespace covey::worker
