// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/train.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/wire_format_proto.h"
#include "worker/examples/synthetic/quadratic.h"
#include "worker/examples/synthetic/step_trace.h"
#include "worker/examples/synthetic/workload.h"
#include "worker/hybrid_step.h"

namespace covey::synthetic {
namespace {

using worker::HybridStep;
using worker::Worker;

constexpr absl::Duration kProgressInterval = absl::Seconds(1);
// Groups may differ in time by as much as in speed.
constexpr absl::Duration kLastWorkerMax = absl::Minutes(30);
// The fraction of a step's computation before the gradients.
constexpr double kForwardShare = 1.0 / 3;

proto::TableSpec TableOf(const Options& options, size_t tensor) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("synthetic/", tensor));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(options.tensor_kib * 1024 / sizeof(float));
  const bool is_local = options.contract.kind == Contract::Kind::kLocal;
  proto::Optimizer& optimizer =
      is_local ? *spec.mutable_inner_optimizer() : *spec.mutable_optimizer();
  if (options.adam) {
    optimizer.set_kind(proto::Optimizer::ADAM);
    optimizer.set_beta1(0.9);
    optimizer.set_beta2(0.999);
    optimizer.set_epsilon(1e-8);
  } else {
    optimizer.set_kind(proto::Optimizer::SGD);
  }
  proto::LearningRate& rate =
      is_local ? *spec.mutable_inner_learning_rate() : *spec.mutable_learning_rate();
  rate.set_base(options.learning_rate);
  if (is_local) {
    // Servers take the mean of the groups' values.
    spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
    spec.mutable_learning_rate()->set_base(1);
  }
  *spec.mutable_contract() = ContractToProto(options.contract);
  spec.set_gradient_format(ToProto(options.wire));
  spec.set_value_format(ToProto(options.value_wire));
  return spec;
}

worker::HybridOptions HybridOptionsOf(const Options& options) {
  return {.synchronization = options.update_on_members ? worker::Synchronization::kDistributed
                                                       : worker::Synchronization::kCentralized,
          .lag = options.lag,
          .fusion = {.bucket_bytes = options.bucket_kib << 10},
          .autotune = options.autotune};
}

struct Model {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;

  std::vector<HybridStep::Tensor> Tensors(const Options& options) {
    std::vector<HybridStep::Tensor> tensors;
    for (size_t t = 0; t < options.tensors; ++t) {
      const proto::TableSpec spec = TableOf(options, t);
      values.emplace_back(spec.shape(0));
      gradients.emplace_back(spec.shape(0));
      tensors.push_back({.table = spec, .values = values[t], .gradient = gradients[t]});
    }
    return tensors;
  }
  double Distance() const {
    double largest = 0;
    for (size_t t = 0; t < values.size(); ++t) {
      largest = std::max(largest, Quadratic::Distance(t, values[t]));
    }
    return largest;
  }
};

// Simulates computation, or input, by pauses; when a pause lasts too long, the next one is shorter.
class Computation {
 public:
  explicit Computation(const Surroundings& surroundings) : surroundings_(surroundings) {}

  absl::Status Spend(absl::Duration time) {
    owed_ += time;
    if (owed_ <= absl::ZeroDuration()) return absl::OkStatus();
    const absl::Time start = surroundings_.now();
    const absl::Status status = surroundings_.pause(owed_);
    owed_ -= surroundings_.now() - start;
    return status;
  }

 private:
  const Surroundings& surroundings_;
  absl::Duration owed_;
};

class Training {
 public:
  Training(Worker& worker, const Options& options, const Surroundings& surroundings,
           StepTrace& trace)
      : worker_(worker),
        options_(options),
        surroundings_(surroundings),
        trace_(trace),
        computation_(surroundings),
        reading_(surroundings) {}

  // Runs all steps.
  absl::StatusOr<Figures> Run() {
    COVEY_ASSIGN_OR_RETURN(
        hybrid_, HybridStep::Create(worker_, model_.Tensors(options_), HybridOptionsOf(options_)));
    Figures figures{.group = worker_.group().id().value()};
    start_ = step_end_ = surroundings_.now();
    absl::Time next_progress = start_ + kProgressInterval;
    // As counted by the group, which may have continued without this worker.
    for (;;) {
      COVEY_ASSIGN_OR_RETURN(const uint64_t step, hybrid_->step());
      if (step >= options_.steps) break;
      COVEY_RETURN_IF_ERROR(Step(step + 1, figures));
      if (worker_.group().rank() != 0 || surroundings_.now() < next_progress) continue;
      next_progress += kProgressInterval;
      COVEY_RETURN_IF_ERROR(PrintProgress());
    }
    COVEY_RETURN_IF_ERROR(hybrid_->Finish());
    figures.seconds = absl::ToDoubleSeconds(surroundings_.now() - start_);
    return figures;
  }

  absl::StatusOr<client::StepTimes> StepTimes() const {
    COVEY_ASSIGN_OR_RETURN(const worker::Progress progress, hybrid_->progress());
    return progress.step_times;
  }

  // The distance of the servers' present values from the optimum.
  absl::StatusOr<double> FinalDistance() {
    COVEY_RETURN_IF_ERROR(hybrid_->Refresh());
    return model_.Distance();
  }

 private:
  absl::Status Step(uint64_t step, Figures& figures) {
    COVEY_ASSIGN_OR_RETURN(const uint64_t samples, hybrid_->SamplesFor(options_.group_batch));
    {
      const HybridStep::InputTime input(*hybrid_);
      COVEY_RETURN_IF_ERROR(reading_.Spend(absl::Milliseconds(
          options_.input_milliseconds_per_sample * static_cast<double>(samples))));
    }
    const absl::Duration compute =
        ComputeTime(options_, worker_.rank(), step, static_cast<double>(samples));
    const absl::Duration per_tensor = compute / static_cast<double>(options_.tensors);
    for (size_t t = 0; t < options_.tensors; ++t) {
      COVEY_RETURN_IF_ERROR(hybrid_->Wait(t));
      COVEY_RETURN_IF_ERROR(computation_.Spend(per_tensor * kForwardShare));
    }
    const Quadratic problem({.spread = options_.spread,
                             .rank = worker_.group().rank(),
                             .size = worker_.group().size()});
    COVEY_RETURN_IF_ERROR(hybrid_->Begin(samples));
    for (size_t t = options_.tensors; t-- > 0;) {
      problem.WriteGradient(t, model_.values[t], model_.gradients[t]);
      COVEY_RETURN_IF_ERROR(computation_.Spend(per_tensor * (1 - kForwardShare)));
      COVEY_RETURN_IF_ERROR(hybrid_->Submit(t));
    }
    hybrid_->Report(model_.gradients[0][0] * model_.gradients[0][0] / 2);
    const absl::Time end = surroundings_.now();
    trace_.Add(worker_.rank(), step, compute, end - std::exchange(step_end_, end));
    ++figures.steps;
    figures.samples += samples;
    figures.compute_seconds += absl::ToDoubleSeconds(compute);
    return absl::OkStatus();
  }

  absl::Status PrintProgress() {
    COVEY_ASSIGN_OR_RETURN(const uint64_t step, hybrid_->step());
    COVEY_ASSIGN_OR_RETURN(const worker::Progress progress, hybrid_->progress());
    const nlohmann::ordered_json json = {
        {"group", worker_.group().id().value()},
        {"rank", worker_.rank()},
        {"step", step},
        {"seconds", absl::ToDoubleSeconds(surroundings_.now() - start_)},
        {"samples", progress.samples},
        {"loss", progress.loss},
        {"samples_per_second", progress.samples_per_second},
        {"staleness", progress.staleness}};
    surroundings_.print(absl::StrCat("progress ", json.dump()));
    return absl::OkStatus();
  }

  Worker& worker_;
  const Options& options_;
  const Surroundings& surroundings_;
  StepTrace& trace_;
  Computation computation_;
  Computation reading_;
  Model model_;
  std::unique_ptr<HybridStep> hybrid_;
  absl::Time start_;
  absl::Time step_end_;  // of the step before
};

}  // namespace

absl::StatusOr<Outcome> Train(Worker& worker, const worker::WorkerConfig& config,
                              const Options& options, const Surroundings& surroundings) {
  COVEY_ASSIGN_OR_RETURN(StepTrace trace, StepTrace::Open(options.step_trace));
  Training training(worker, options, surroundings, trace);
  const absl::StatusOr<Figures> own = training.Run();
  COVEY_RETURN_IF_ERROR(trace.Flush());
  const Patience patience = {
      .now = surroundings.now, .pause = surroundings.pause, .max = kLastWorkerMax};
  Outcome outcome;
  if (absl::IsAborted(own.status())) {
    // The group continues without this worker, which still has to wait for the end.
    surroundings.print(absl::StrCat("left out: ", own.status().message()));
    COVEY_RETURN_IF_ERROR(MeetAtEnd(worker, patience));
    return outcome;
  }
  COVEY_RETURN_IF_ERROR(own.status());
  COVEY_ASSIGN_OR_RETURN(outcome.step_times, training.StepTimes());
  COVEY_ASSIGN_OR_RETURN(outcome.workers, GatherFigures(worker, config, *own, patience));
  // Includes the last pushes of the other groups.
  COVEY_ASSIGN_OR_RETURN(outcome.distance, training.FinalDistance());
  return outcome;
}

}  // namespace covey::synthetic
