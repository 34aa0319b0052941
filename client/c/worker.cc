// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c/boundary.h"
#include "client/c/covey.h"
#include "client/c/definitions.h"
#include "client/c/objects.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "worker/config.h"
#include "worker/group.h"

namespace covey::c {
namespace {

absl::StatusOr<worker::CollectiveOptions> CollectiveOptionsOf(
    const covey_collective_options* given) {
  COVEY_ASSIGN_OR_RETURN(const covey_collective_options options,
                         OptionsOf<covey_collective_options>(given, "covey_collective_options",
                                                             COVEY_COLLECTIVE_OPTIONS_INIT));
  worker::CollectiveOptions collective{.priority = options.priority, .input = options.input};
  if (options.format >= 0) {
    COVEY_ASSIGN_OR_RETURN(collective.format, FormatOf(options.format));
  }
  return collective;
}

// The tensor and the operation of a collective, as the program has given them.
struct GivenTensor {
  void* data = nullptr;
  uint64_t elements = 0;
  int32_t type = COVEY_ELEMENT_FLOAT32;
  int32_t operation = COVEY_SUM;
};

// A collective on one tensor: `start` gets the group, the tensor and the options.
template <typename Start>
covey_code StartOn(covey_worker* worker, const GivenTensor& tensor,
                   const covey_collective_options* given, covey_handle** handle, covey_error* error,
                   const Start& start) noexcept {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    if (tensor.elements > 0) COVEY_RETURN_IF_ERROR(NotNull(tensor.data, "data"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const ElementType type, ElementTypeOf(tensor.type));
    COVEY_ASSIGN_OR_RETURN(auto options, CollectiveOptionsOf(given));
    COVEY_ASSIGN_OR_RETURN(options.op, ReduceOpOf(tensor.operation));
    *handle = NewHandle(
        start(worker->worker->group(), ElementSpan(type, tensor.data, tensor.elements), options));
    return absl::OkStatus();
  });
}

covey_code AllReduce(covey_worker* worker, const GivenTensor& tensor,
                     const covey_collective_options* options, covey_handle** handle,
                     covey_error* error) noexcept {
  return StartOn(worker, tensor, options, handle, error,
                 [](worker::Group& group, ElementSpan data, const worker::CollectiveOptions& how) {
                   return group.AllReduce(data, how);
                 });
}

covey_code ReduceScatter(covey_worker* worker, const GivenTensor& tensor,
                         const covey_collective_options* options, covey_handle** handle,
                         covey_error* error) noexcept {
  return StartOn(worker, tensor, options, handle, error,
                 [](worker::Group& group, ElementSpan data, const worker::CollectiveOptions& how) {
                   return group.ReduceScatter(data, {}, how);
                 });
}

covey_code AllGather(covey_worker* worker, const GivenTensor& tensor,
                     const covey_collective_options* options, covey_handle** handle,
                     covey_error* error) noexcept {
  return StartOn(worker, tensor, options, handle, error,
                 [](worker::Group& group, ElementSpan data, const worker::CollectiveOptions& how) {
                   return group.AllGather(data, {}, how);
                 });
}

covey_code Broadcast(covey_worker* worker, const GivenTensor& tensor, uint32_t root,
                     const covey_collective_options* options, covey_handle** handle,
                     covey_error* error) noexcept {
  return StartOn(
      worker, tensor, options, handle, error,
      [root](worker::Group& group, ElementSpan data, const worker::CollectiveOptions& how) {
        return group.Broadcast(data, root, how);
      });
}

}  // namespace
}  // namespace covey::c

using covey::c::Guard;
using covey::c::GuardWorker;
using covey::c::NewHandle;
using covey::c::NotNull;

extern "C" {

covey_code covey_worker_join(const char* const* settings, covey_worker** worker,
                             covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(worker, "worker"));
    covey::worker::WorkerConfig config;
    covey::ConfigFile options("covey_worker", "");
    config.AddTo(options);
    COVEY_RETURN_IF_ERROR(covey::c::LoadSettings(settings, options));
    const covey::c::SignalsBlocked blocked;
    COVEY_ASSIGN_OR_RETURN(auto joined, covey::worker::Worker::Join(config));
    auto object = std::make_unique<covey_worker>();
    object->worker = std::move(joined);
    *worker = object.release();
    return absl::OkStatus();
  });
}

void covey_worker_leave(covey_worker* worker) {
  if (worker != nullptr && worker->creator.is_this()) covey::c::Release(worker);
}

covey_code covey_worker_place(covey_worker* worker, covey_place* place, covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    const covey::worker::Worker& joined = *worker->worker;
    covey::c::Return({.rank = joined.rank(),
                      .group = joined.group().id().value(),
                      .group_rank = joined.group().rank(),
                      .size = joined.size(),
                      .groups = joined.groups(),
                      .group_size = joined.group().size(),
                      .initial_groups = joined.initial_groups()},
                     place);
    return absl::OkStatus();
  });
}

covey_code covey_worker_barrier(covey_worker* worker, const char* name, double seconds,
                                covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(name, "name"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration timeout, covey::c::DeadlineOf(seconds));
    return worker->worker->Barrier(name, timeout);
  });
}

covey_code covey_worker_request_drain(covey_worker* worker, covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(worker, "worker"));
    COVEY_RETURN_IF_ERROR(worker->creator.Check());
    return worker->worker->RequestDrain();
  });
}

covey_code covey_worker_set_away(covey_worker* worker, const char* reason, double seconds,
                                 covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(reason, "reason"));
    return worker->worker->SetAway(reason, absl::Seconds(seconds));
  });
}

covey_code covey_worker_set_back(covey_worker* worker, covey_error* error) {
  return GuardWorker(worker, error, [&] { return worker->worker->SetBack(); });
}

covey_code covey_group_all_reduce(covey_worker* worker, float* data, uint64_t elements,
                                  const covey_collective_options* options, covey_handle** handle,
                                  covey_error* error) {
  return covey::c::AllReduce(worker, {.data = data, .elements = elements}, options, handle, error);
}

covey_code covey_group_all_reduce_typed(covey_worker* worker, void* data, uint64_t elements,
                                        int32_t type, int32_t operation,
                                        const covey_collective_options* options,
                                        covey_handle** handle, covey_error* error) {
  return covey::c::AllReduce(
      worker, {.data = data, .elements = elements, .type = type, .operation = operation}, options,
      handle, error);
}

covey_code covey_group_all_reduce_many(covey_worker* worker, float* const* tensors,
                                       const uint64_t* elements, size_t count,
                                       const covey_collective_options* options,
                                       covey_handle** handle, covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_RETURN_IF_ERROR(NotNull(tensors, "tensors"));
    COVEY_RETURN_IF_ERROR(NotNull(elements, "elements"));
    COVEY_ASSIGN_OR_RETURN(const auto how, covey::c::CollectiveOptionsOf(options));
    std::vector<std::span<float>> spans;
    for (size_t i = 0; i < count; ++i) {
      if (elements[i] > 0) COVEY_RETURN_IF_ERROR(NotNull(tensors[i], "tensors[i]"));
      spans.emplace_back(tensors[i], elements[i]);
    }
    *handle = NewHandle(worker->worker->group().AllReduce(std::move(spans), how));
    return absl::OkStatus();
  });
}

covey_code covey_group_reduce_scatter(covey_worker* worker, float* data, uint64_t elements,
                                      const covey_collective_options* options,
                                      covey_handle** handle, covey_error* error) {
  return covey::c::ReduceScatter(worker, {.data = data, .elements = elements}, options, handle,
                                 error);
}

covey_code covey_group_reduce_scatter_typed(covey_worker* worker, void* data, uint64_t elements,
                                            int32_t type, int32_t operation,
                                            const covey_collective_options* options,
                                            covey_handle** handle, covey_error* error) {
  return covey::c::ReduceScatter(
      worker, {.data = data, .elements = elements, .type = type, .operation = operation}, options,
      handle, error);
}

covey_code covey_group_all_gather(covey_worker* worker, float* data, uint64_t elements,
                                  const covey_collective_options* options, covey_handle** handle,
                                  covey_error* error) {
  return covey::c::AllGather(worker, {.data = data, .elements = elements}, options, handle, error);
}

covey_code covey_group_all_gather_typed(covey_worker* worker, void* data, uint64_t elements,
                                        int32_t type, const covey_collective_options* options,
                                        covey_handle** handle, covey_error* error) {
  return covey::c::AllGather(worker, {.data = data, .elements = elements, .type = type}, options,
                             handle, error);
}

covey_code covey_group_broadcast(covey_worker* worker, float* data, uint64_t elements,
                                 uint32_t root, const covey_collective_options* options,
                                 covey_handle** handle, covey_error* error) {
  return covey::c::Broadcast(worker, {.data = data, .elements = elements}, root, options, handle,
                             error);
}

covey_code covey_group_broadcast_typed(covey_worker* worker, void* data, uint64_t elements,
                                       int32_t type, uint32_t root,
                                       const covey_collective_options* options,
                                       covey_handle** handle, covey_error* error) {
  return covey::c::Broadcast(worker, {.data = data, .elements = elements, .type = type}, root,
                             options, handle, error);
}

covey_code covey_group_barrier(covey_worker* worker, covey_handle** handle, covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    *handle = NewHandle(worker->worker->group().Barrier());
    return absl::OkStatus();
  });
}

covey_code covey_group_refresh(covey_worker* worker, covey_error* error) {
  return GuardWorker(worker, error, [&] { return worker->worker->group().Refresh(); });
}

}  // extern "C"
