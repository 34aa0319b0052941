// SPDX-License-Identifier: Apache-2.0
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/c/boundary.h"
#include "client/c/covey.h"
#include "client/c/objects.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/runtime/process_main.h"

using covey::c::Guard;

extern "C" {

const char* covey_version(void) { return covey::kVersion; }

uint32_t covey_abi_version(void) { return COVEY_ABI_VERSION; }

void covey_keep_freed_memory(void) { covey::KeepFreedMemory(); }

const char* covey_code_name(covey_code code) {
  switch (code) {
    case COVEY_OK:
      return "OK";
    case COVEY_CANCELLED:
      return "CANCELLED";
    case COVEY_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case COVEY_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case COVEY_NOT_FOUND:
      return "NOT_FOUND";
    case COVEY_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case COVEY_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case COVEY_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case COVEY_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case COVEY_ABORTED:
      return "ABORTED";
    case COVEY_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case COVEY_INTERNAL:
      return "INTERNAL";
    case COVEY_UNAVAILABLE:
      return "UNAVAILABLE";
    case COVEY_DATA_LOSS:
      return "DATA_LOSS";
    case COVEY_UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    default:
      return "UNKNOWN";
  }
}

void covey_text_free(char* text) { covey::c::FreeText(text); }

int32_t covey_handle_done(const covey_handle* handle) {
  return handle == nullptr || !handle->creator.is_this() || handle->handle.done() ? 1 : 0;
}

covey_code covey_handle_wait(const covey_handle* handle, double seconds, covey_result* result,
                             covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(covey::c::NotNull(handle, "handle"));
    COVEY_RETURN_IF_ERROR(handle->creator.Check());
    COVEY_ASSIGN_OR_RETURN(const absl::Duration wait, covey::c::WaitOf(seconds));
    const absl::Status status = handle->handle.WaitFor(wait);
    if (!handle->handle.done()) return status;
    const covey::client::OperationResult ended = handle->handle.result();
    covey::c::Return({.duplicate = ended.duplicate,
                      .discarded = ended.discarded,
                      .durable = ended.durable,
                      .version = ended.version.value(),
                      .staleness = ended.staleness,
                      .age_seconds = absl::ToDoubleSeconds(ended.age),
                      .samples = ended.samples,
                      .rows_refused = ended.rows_refused},
                     result);
    return ended.status;
  });
}

void covey_handle_free(covey_handle* handle) {
  // A lock of the other process may be held for ever in a child by fork.
  if (handle != nullptr && handle->creator.is_this()) covey::c::Release(handle);
}

covey_code covey_notifier_new(covey_notifier** notifier, covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(covey::c::NotNull(notifier, "notifier"));
    covey::Descriptor descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!descriptor.open()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no eventfd: ", std::strerror(errno), "; raise the limit of open files (ulimit -n)"));
    }
    *notifier = covey::c::NewObject(covey_notifier{
        .descriptor = std::make_shared<const covey::Descriptor>(std::move(descriptor))});
    return absl::OkStatus();
  });
}

int32_t covey_notifier_descriptor(const covey_notifier* notifier) {
  return notifier == nullptr ? -1 : notifier->descriptor->number();
}

covey_code covey_notifier_add(const covey_notifier* notifier, const covey_handle* handle,
                              covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(covey::c::NotNull(notifier, "notifier"));
    COVEY_RETURN_IF_ERROR(covey::c::NotNull(handle, "handle"));
    COVEY_RETURN_IF_ERROR(handle->creator.Check());
    handle->handle.OnDone([descriptor = notifier->descriptor] {
      // Fails only where the counter is full, and the descriptor is readable then.
      eventfd_write(descriptor->number(), 1);
    });
    return absl::OkStatus();
  });
}

void covey_notifier_free(covey_notifier* notifier) {
  if (notifier != nullptr) covey::c::Release(notifier);
}

}  // extern "C"
