// SPDX-License-Identifier: Apache-2.0

// A worker whose steps reduce gradients and do nothing else, to compare settings on a link:
//
//   covey run --workers 4 -- tuned_worker --autotune     the group finds its settings
//   covey run --workers 4 -- tuned_worker --collective ring
//                                        with that algorithm, each division into buckets in turn

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "worker/examples/worker_program.h"
#include "worker/hybrid/step_tuning.h"
#include "worker/hybrid_step.h"

namespace covey::tuned_worker {
namespace {

using worker::HybridStep;

struct Options {
  uint64_t tensors = 24;
  uint64_t tensor_kib = 8;
  // Steps with each setting, and after the group has found its own.
  uint64_t steps = 12;
  bool autotune = false;
};

class Program {
 public:
  Program(const Options& options, const worker::WorkerConfig& config, worker::Worker& worker)
      : options_(options), config_(config), worker_(worker) {
    const size_t elements = options.tensor_kib * 1024 / sizeof(float);
    gradients_.assign(options.tensors, std::vector<float>(elements, 1));
    means_ = gradients_;
  }

  absl::Status Run() {
    nlohmann::ordered_json rates;
    if (options_.autotune) {
      COVEY_RETURN_IF_ERROR(Begin({.autotune = true}));
      COVEY_RETURN_IF_ERROR(MedianOf(worker::kTunerSamplesMax * worker::kTrialSteps).status());
      COVEY_ASSIGN_OR_RETURN(rates["tuned"], RateOf());
    } else {
      std::vector<worker::FusionLimits> fusions = worker::FusionCandidates();
      for (const worker::FusionLimits& fusion : fusions) {
        COVEY_RETURN_IF_ERROR(Begin({.fusion = fusion}));
        COVEY_ASSIGN_OR_RETURN(rates[absl::StrCat(fusion.bucket_bytes)], RateOf());
      }
    }
    hybrid_.reset();
    COVEY_RETURN_IF_ERROR(
        worker_.Barrier("tuned_worker/measured", config_.cluster.operation_deadline));
    if (worker_.group().rank() > 0) return absl::OkStatus();
    std::cout << absl::StrCat("result ", rates.dump()) << std::endl;
    return absl::OkStatus();
  }

 private:
  absl::Status Begin(worker::HybridOptions hybrid) {
    hybrid_.reset();
    hybrid.synchronization = worker::Synchronization::kProgram;
    std::vector<HybridStep::Tensor> tensors;
    for (size_t t = 0; t < gradients_.size(); ++t) {
      HybridStep::Tensor& tensor = tensors.emplace_back();
      tensor.table.set_name(absl::StrCat("tensor-", t));
      tensor.table.add_shape(gradients_[t].size());
      tensor.table.set_data_type(proto::FLOAT32);
      tensor.table.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
      tensor.table.mutable_learning_rate()->set_base(1);
      tensor.table.mutable_contract()->set_kind(proto::Contract::BSP);
      tensor.values = means_[t];
      tensor.gradient = gradients_[t];
    }
    COVEY_ASSIGN_OR_RETURN(hybrid_, HybridStep::Create(worker_, std::move(tensors), hybrid));
    return absl::OkStatus();
  }

  absl::StatusOr<double> MedianOf(uint64_t steps) {
    std::vector<double> seconds;
    for (uint64_t step = 0; step < steps; ++step) {
      const absl::Time begin = MonotonicNow();
      COVEY_RETURN_IF_ERROR(hybrid_->Begin(1));
      for (size_t t = gradients_.size(); t-- > 0;) COVEY_RETURN_IF_ERROR(hybrid_->Submit(t));
      for (size_t t = 0; t < gradients_.size(); ++t) COVEY_RETURN_IF_ERROR(hybrid_->Wait(t));
      seconds.push_back(absl::ToDoubleSeconds(MonotonicNow() - begin));
      if (means_[0][0] != 1) {
        return absl::DataLossError(absl::StrCat("the mean of ones is ", means_[0][0]));
      }
    }
    return UpperMedian(std::move(seconds));
  }
  // Steps per second, after two that make plans and memory.
  absl::StatusOr<double> RateOf() {
    COVEY_RETURN_IF_ERROR(MedianOf(2).status());
    COVEY_ASSIGN_OR_RETURN(const double seconds, MedianOf(options_.steps));
    return 1 / seconds;
  }

  const Options& options_;
  const worker::WorkerConfig& config_;
  worker::Worker& worker_;
  std::vector<std::vector<float>> gradients_;
  std::vector<std::vector<float>> means_;
  std::unique_ptr<HybridStep> hybrid_;
};

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "tuned_worker",
       .description = "Reduces gradients, to compare settings on a link.",
       .add_options =
           [&options](ConfigFile& file) {
             file.Add("tensors", &options.tensors, "tensors of the model");
             file.Add("tensor-kib", &options.tensor_kib, "size of each tensor, KiB");
             file.Add("steps", &options.steps, "steps whose median time counts");
             file.Add("autotune", &options.autotune, "the group finds its settings");
           },
       .validate = [] { return absl::OkStatus(); },
       .run = [&options](
                  const worker::WorkerConfig& config,
                  worker::Worker& worker) { return Program(options, config, worker).Run(); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::tuned_worker

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::tuned_worker::Main(argc, argv);
}
