// SPDX-License-Identifier: Apache-2.0
#include "worker/local_rows.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/c/boundary.h"
#include "client/c/covey.h"
#include "client/c/definitions.h"
#include "client/c/objects.h"
#include "common/base/status_macros.h"

using covey::c::GuardPart;
using covey::c::GuardWorker;
using covey::c::NewObject;
using covey::c::NotNull;
using covey::c::Release;
using covey::worker::LocalRows;

extern "C" {

covey_code covey_local_rows_open(covey_worker* worker, const char* definition,
                                 const covey_local_rows_options* options, covey_local_rows** rows,
                                 covey_error* error) {
  return GuardWorker(worker, error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(definition, "definition"));
    COVEY_RETURN_IF_ERROR(NotNull(rows, "rows"));
    COVEY_ASSIGN_OR_RETURN(const auto given,
                           covey::c::OptionsOf<covey_local_rows_options>(
                               options, "covey_local_rows_options", COVEY_LOCAL_ROWS_OPTIONS_INIT));
    COVEY_ASSIGN_OR_RETURN(const auto spec, covey::c::TableSpecOf(definition));
    COVEY_ASSIGN_OR_RETURN(
        auto opened,
        LocalRows::Open(*worker->worker, spec, {.rows_max = static_cast<size_t>(given.rows_max)}));
    *rows = NewObject(covey_local_rows{.worker = worker, .rows = std::move(opened)});
    return absl::OkStatus();
  });
}

void covey_local_rows_close(covey_local_rows* rows) {
  if (rows == nullptr) return;
  GuardPart(rows, "rows", nullptr, [&] {
    Release(rows);
    return absl::OkStatus();
  });
}

covey_code covey_local_rows_pull(covey_local_rows* rows, const uint64_t* keys, uint64_t count,
                                 float* values, uint64_t elements, double seconds,
                                 covey_error* error) {
  return GuardPart(rows, "rows", error, [&]() -> absl::Status {
    if (count > 0) COVEY_RETURN_IF_ERROR(NotNull(keys, "keys"));
    if (elements > 0) COVEY_RETURN_IF_ERROR(NotNull(values, "values"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration wait, covey::c::WaitOf(seconds));
    return rows->rows->Pull({keys, count}, {values, elements}, wait);
  });
}

covey_code covey_local_rows_step(covey_local_rows* rows, const float* gradient, uint64_t elements,
                                 uint64_t samples, double seconds, covey_error* error) {
  return GuardPart(rows, "rows", error, [&]() -> absl::Status {
    if (elements > 0) COVEY_RETURN_IF_ERROR(NotNull(gradient, "gradient"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration wait, covey::c::WaitOf(seconds));
    return rows->rows->Step({gradient, elements}, samples, wait);
  });
}

covey_code covey_local_rows_finish(covey_local_rows* rows, double seconds, covey_error* error) {
  return GuardPart(rows, "rows", error, [&]() -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const absl::Duration wait, covey::c::WaitOf(seconds));
    return rows->rows->Finish(wait);
  });
}

int32_t covey_local_rows_in_flight(covey_local_rows* rows) {
  int32_t in_flight = 0;
  GuardPart(rows, "rows", nullptr, [&] {
    in_flight = rows->rows->in_flight() ? 1 : 0;
    return absl::OkStatus();
  });
  return in_flight;
}

uint64_t covey_local_rows_width(const covey_local_rows* rows) {
  return rows == nullptr ? 0 : rows->rows->width();
}

covey_code covey_local_rows_round(covey_local_rows* rows, uint64_t* round, covey_error* error) {
  return GuardPart(rows, "rows", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(round, "round"));
    *round = rows->rows->round();
    return absl::OkStatus();
  });
}

}  // extern "C"
