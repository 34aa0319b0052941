// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/c/boundary.h"
#include "client/c/covey.h"
#include "client/c/definitions.h"
#include "client/c/objects.h"
#include "common/base/status_macros.h"
#include "worker/data_source.h"
#include "worker/hybrid_step.h"

namespace covey::c {
namespace {

absl::StatusOr<worker::HybridOptions> HybridOptionsOf(const covey_step_options* given) {
  COVEY_ASSIGN_OR_RETURN(
      const covey_step_options options,
      OptionsOf<covey_step_options>(given, "covey_step_options", COVEY_STEP_OPTIONS_INIT));
  if (options.autotune > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("covey_step_options.autotune is ", options.autotune, "; use 0 or 1"));
  }
  worker::HybridOptions hybrid{.lag = options.lag,
                               .max_gradient_norm = options.max_gradient_norm,
                               .autotune = options.autotune == 1};
  switch (options.update) {
    case COVEY_UPDATE_ON_SERVERS:
      hybrid.synchronization = worker::Synchronization::kCentralized;
      break;
    case COVEY_UPDATE_ON_MEMBERS:
      hybrid.synchronization = worker::Synchronization::kDistributed;
      break;
    case COVEY_UPDATE_BY_PROGRAM:
      hybrid.synchronization = worker::Synchronization::kProgram;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("covey_step_options.update is ", options.update,
                       "; use COVEY_UPDATE_ON_SERVERS, COVEY_UPDATE_ON_MEMBERS or "
                       "COVEY_UPDATE_BY_PROGRAM"));
  }
  switch (options.error_feedback) {
    case COVEY_FEEDBACK_NEVER:
      hybrid.error_feedback = worker::ErrorFeedback::kNever;
      break;
    case COVEY_FEEDBACK_8BIT:
      hybrid.error_feedback = worker::ErrorFeedback::kEightBits;
      break;
    case COVEY_FEEDBACK_ALWAYS:
      hybrid.error_feedback = worker::ErrorFeedback::kAlways;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("covey_step_options.error_feedback is ", options.error_feedback,
                       "; use COVEY_FEEDBACK_NEVER, COVEY_FEEDBACK_8BIT or COVEY_FEEDBACK_ALWAYS"));
  }
  switch (options.combine) {
    case COVEY_COMBINE_MEAN:
      hybrid.combine = worker::Combine::kMean;
      break;
    case COVEY_COMBINE_ADASUM:
      hybrid.combine = worker::Combine::kAdasum;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("covey_step_options.combine is ", options.combine,
                       "; use COVEY_COMBINE_MEAN or COVEY_COMBINE_ADASUM"));
  }
  return hybrid;
}

absl::StatusOr<worker::HybridStep::Tensor> TensorOf(const covey_step_tensor& given) {
  COVEY_ASSIGN_OR_RETURN(
      const covey_step_tensor tensor,
      OptionsOf<covey_step_tensor>(&given, "covey_step_tensor", COVEY_STEP_TENSOR_INIT));
  COVEY_RETURN_IF_ERROR(NotNull(tensor.table, "table"));
  COVEY_RETURN_IF_ERROR(NotNull(tensor.values, "values"));
  COVEY_ASSIGN_OR_RETURN(const proto::TableSpec table, TableSpecOf(tensor.table));
  return worker::HybridStep::Tensor{.table = table,
                                    .values = std::span(tensor.values, tensor.elements),
                                    .gradient = {},
                                    .rate_factor = tensor.rate_factor};
}

absl::StatusOr<std::vector<worker::HybridStep::Tensor>> TensorsOf(const covey_step_tensor* tensors,
                                                                  size_t count) {
  std::vector<worker::HybridStep::Tensor> all;
  COVEY_RETURN_IF_ERROR(
      ForEachOf(tensors, count, "tensor", [&all](const covey_step_tensor& given) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(auto tensor, TensorOf(given));
        all.push_back(std::move(tensor));
        return absl::OkStatus();
      }));
  return all;
}

}  // namespace
}  // namespace covey::c

using covey::c::GuardPart;
using covey::c::GuardWorker;
using covey::c::NewObject;
using covey::c::NotNull;
using covey::c::Release;
using covey::worker::DataSource;
using covey::worker::HybridStep;

extern "C" {

covey_code covey_step_create(covey_worker* worker, const covey_step_tensor* tensors, size_t count,
                             const covey_step_options* options, covey_step** step,
                             covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(tensors, "tensors"));
    COVEY_RETURN_IF_ERROR(NotNull(step, "step"));
    COVEY_ASSIGN_OR_RETURN(auto all, covey::c::TensorsOf(tensors, count));
    COVEY_ASSIGN_OR_RETURN(const auto hybrid, covey::c::HybridOptionsOf(options));
    COVEY_ASSIGN_OR_RETURN(auto created,
                           HybridStep::Create(*worker->worker, std::move(all), hybrid));
    *step = NewObject(covey_step{.worker = worker, .step = std::move(created)});
    return absl::OkStatus();
  });
}

void covey_step_free(covey_step* step) {
  if (step == nullptr) return;
  GuardPart(step, "step", nullptr, [&] {
    Release(step);
    return absl::OkStatus();
  });
}

covey_code covey_step_begin(covey_step* step, uint64_t samples, covey_error* error) {
  return GuardPart(step, "step", error, [&] { return step->step->Begin(samples); });
}

covey_code covey_step_submit(covey_step* step, size_t tensor, const float* gradient,
                             uint64_t elements, covey_error* error) {
  return GuardPart(step, "step", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(gradient, "gradient"));
    return step->step->Submit(tensor, {gradient, elements});
  });
}

covey_code covey_step_set_rate_factor(covey_step* step, size_t tensor, double factor,
                                      covey_error* error) {
  return GuardPart(step, "step", error, [&] { return step->step->SetRateFactor(tensor, factor); });
}

covey_code covey_step_wait(covey_step* step, size_t tensor, double seconds, covey_error* error) {
  return GuardPart(step, "step", error, [&]() -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const absl::Duration wait, covey::c::WaitOf(seconds));
    return step->step->WaitFor(tensor, wait);
  });
}

int32_t covey_step_in_flight(covey_step* step, size_t tensor) {
  int32_t in_flight = 0;
  GuardPart(step, "step", nullptr, [&] {
    in_flight = step->step->in_flight(tensor) ? 1 : 0;
    return absl::OkStatus();
  });
  return in_flight;
}

covey_code covey_step_mean_samples(covey_step* step, size_t tensor, uint64_t* samples,
                                   covey_error* error) {
  return GuardPart(step, "step", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(samples, "samples"));
    *samples = step->step->mean_samples(tensor);
    return absl::OkStatus();
  });
}

covey_code covey_step_finish(covey_step* step, covey_error* error) {
  return GuardPart(step, "step", error, [&] { return step->step->Finish(); });
}

covey_code covey_step_refresh(covey_step* step, covey_error* error) {
  return GuardPart(step, "step", error, [&] { return step->step->Refresh(); });
}

covey_code covey_step_number(covey_step* step, uint64_t* number, covey_error* error) {
  return GuardPart(step, "step", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(number, "number"));
    COVEY_ASSIGN_OR_RETURN(*number, step->step->step());
    return absl::OkStatus();
  });
}

covey_code covey_step_gradient_norm(covey_step* step, double* norm, covey_error* error) {
  return GuardPart(step, "step", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(norm, "norm"));
    COVEY_ASSIGN_OR_RETURN(const std::optional<double> newest, step->step->gradient_norm());
    *norm = newest.value_or(std::numeric_limits<double>::quiet_NaN());
    return absl::OkStatus();
  });
}

covey_code covey_step_samples_for(covey_step* step, uint64_t group_batch, uint64_t* samples,
                                  covey_error* error) {
  return GuardPart(step, "step", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(samples, "samples"));
    COVEY_ASSIGN_OR_RETURN(*samples, step->step->SamplesFor(group_batch));
    return absl::OkStatus();
  });
}

covey_code covey_step_report(covey_step* step, double loss, covey_error* error) {
  return GuardPart(step, "step", error, [&] {
    step->step->Report(std::isnan(loss) ? std::nullopt : std::make_optional(loss));
    return absl::OkStatus();
  });
}

covey_code covey_source_open(covey_worker* worker, const covey_source_options* options,
                             covey_source** source, covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(options, "options"));
    COVEY_RETURN_IF_ERROR(NotNull(source, "source"));
    COVEY_ASSIGN_OR_RETURN(const covey_source_options given,
                           covey::c::OptionsOf<covey_source_options>(
                               options, "covey_source_options", COVEY_SOURCE_OPTIONS_INIT));
    COVEY_RETURN_IF_ERROR(NotNull(given.name, "name"));
    if (given.at_pass_end != COVEY_PASS_GO_ON && given.at_pass_end != COVEY_PASS_MEET) {
      return absl::InvalidArgumentError(
          absl::StrCat("at_pass_end ", given.at_pass_end,
                       " does not exist; use COVEY_PASS_GO_ON or COVEY_PASS_MEET"));
    }
    COVEY_ASSIGN_OR_RETURN(
        auto opened,
        DataSource::Open(*worker->worker, {.name = given.name,
                                           .examples = given.examples,
                                           .item_examples = given.item_examples,
                                           .passes = given.passes,
                                           .seed = given.seed,
                                           .at_pass_end = given.at_pass_end == COVEY_PASS_MEET
                                                              ? DataSource::AtPassEnd::kMeet
                                                              : DataSource::AtPassEnd::kGoOn}));
    *source = NewObject(covey_source{.worker = worker, .source = std::move(opened)});
    return absl::OkStatus();
  });
}

void covey_source_close(covey_source* source) {
  if (source == nullptr) return;
  GuardPart(source, "source", nullptr, [&] {
    Release(source);
    return absl::OkStatus();
  });
}

covey_code covey_source_take(covey_source* source, uint64_t samples, const uint32_t** positions,
                             size_t* count, covey_error* error) {
  return GuardPart(source, "source", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(positions, "positions"));
    COVEY_RETURN_IF_ERROR(NotNull(count, "count"));
    COVEY_ASSIGN_OR_RETURN(const auto batch, source->source->Take(samples));
    *positions = batch.data();
    *count = batch.size();
    return absl::OkStatus();
  });
}

covey_code covey_source_finish(covey_source* source, size_t in_progress, covey_error* error) {
  return GuardPart(source, "source", error, [&] {
    source->source->Finish(in_progress);
    return absl::OkStatus();
  });
}

int32_t covey_source_done(covey_source* source) {
  int32_t done = 1;
  GuardPart(source, "source", nullptr, [&] {
    done = source->source->done() ? 1 : 0;
    return absl::OkStatus();
  });
  return done;
}

uint64_t covey_source_examples_finished(covey_source* source) {
  uint64_t examples = 0;
  GuardPart(source, "source", nullptr, [&] {
    examples = source->source->examples_finished();
    return absl::OkStatus();
  });
  return examples;
}

uint64_t covey_source_pass(covey_source* source) {
  uint64_t pass = 0;
  GuardPart(source, "source", nullptr, [&] {
    pass = source->source->pass();
    return absl::OkStatus();
  });
  return pass;
}

covey_code covey_source_next_pass(covey_source* source, int32_t* goes_on, covey_error* error) {
  return GuardPart(source, "source", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(goes_on, "goes_on"));
    COVEY_ASSIGN_OR_RETURN(const bool is_next, source->source->NextPass());
    *goes_on = is_next ? 1 : 0;
    return absl::OkStatus();
  });
}

covey_code covey_source_meet_at_end(covey_source* source, covey_step* step, int32_t* over,
                                    covey_error* error) {
  return GuardPart(source, "source", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(step, "step"));
    COVEY_RETURN_IF_ERROR(NotNull(over, "over"));
    COVEY_ASSIGN_OR_RETURN(const bool is_over, source->source->MeetAtEnd(*step->step));
    *over = is_over ? 1 : 0;
    return absl::OkStatus();
  });
}

}  // extern "C"
