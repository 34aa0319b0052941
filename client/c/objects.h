// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "client/c/boundary.h"
#include "client/c/covey.h"
#include "client/handle.h"
#include "client/parameter_client.h"
#include "client/row_cache.h"
#include "client/row_filter.h"
#include "client/row_reader.h"
#include "common/base/descriptor.h"
#include "common/base/mutex.h"
#include "worker/data_source.h"
#include "worker/hybrid_step.h"
#include "worker/local_rows.h"
#include "worker/worker.h"

// The objects behind the opaque types of covey.h.

struct covey_client {
  covey::c::Creator creator;
  std::unique_ptr<covey::client::ParameterClient> client;
};

struct covey_table {
  covey::client::Table table;
};

struct covey_batch {
  covey::client::RowBatch batch;
};

// The mutex makes its calls one at a time.
struct covey_row_cache {
  covey::c::Creator creator;
  covey::Mutex mutex;
  std::unique_ptr<covey::client::RowCache> cache;
};

// The same of a filter.
struct covey_row_filter {
  covey::c::Creator creator;
  covey::Mutex mutex;
  std::unique_ptr<covey::client::RowFilter> filter;
};

// The same of a reader.
struct covey_row_reader {
  covey::c::Creator creator;
  covey::Mutex mutex;
  std::unique_ptr<covey::client::RowReader> reader;
  bool has_ended = false;
};

struct covey_handle {
  covey::c::Creator creator;
  covey::client::Handle handle;
};

// Operations in progress hold the descriptor, too.
struct covey_notifier {
  std::shared_ptr<const covey::Descriptor> descriptor;
};

// The mutex of a worker makes its calls, and those of its parts below, one at a time.
struct covey_worker {
  covey::c::Creator creator;
  covey::Mutex mutex;
  std::unique_ptr<covey::worker::Worker> worker;
};

struct covey_step {
  covey_worker* worker;
  std::unique_ptr<covey::worker::HybridStep> step;
};

struct covey_source {
  covey_worker* worker;
  std::unique_ptr<covey::worker::DataSource> source;
};

struct covey_local_rows {
  covey_worker* worker;
  std::unique_ptr<covey::worker::LocalRows> rows;
};

namespace covey::c {

// An object that the program owns from now on, and gives back to Release.
template <typename Object>
Object* NewObject(Object object) {
  return std::make_unique<Object>(std::move(object)).release();
}
template <typename Object>
void Release(Object* object) {
  const std::unique_ptr<Object> owned(object);
}

inline covey_handle* NewHandle(client::Handle handle) {
  return NewObject(covey_handle{.handle = std::move(handle)});
}

// Runs `body` as the only call of an object that has a mutex and knows the process that made it.
template <typename Object, typename Body>
covey_code GuardObject(Object* object, absl::string_view name, covey_error* error,
                       const Body& body) noexcept {
  return Guard(error, [&]() -> absl::Status {
    absl::Status status = NotNull(object, name);
    if (status.ok()) status = object->creator.Check();
    if (!status.ok()) return status;
    const MutexLock lock(object->mutex);
    return body();
  });
}

template <typename Body>
covey_code GuardWorker(covey_worker* worker, covey_error* error, const Body& body) noexcept {
  return GuardObject(worker, "worker", error, body);
}

// The same for a step, a source or local rows, which belong to a worker.
template <typename Part, typename Body>
covey_code GuardPart(Part* part, absl::string_view name, covey_error* error,
                     const Body& body) noexcept {
  if (part != nullptr) return GuardWorker(part->worker, error, body);
  return Guard(error, [&] { return NotNull(part, name); });
}

}  // namespace covey::c
