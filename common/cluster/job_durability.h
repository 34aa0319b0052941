// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/table.pb.h"

namespace covey {

// How much of its state a job may lose, as its operator says. A value.
struct JobDurability {
  enum class Kind {
    // Updates may be in the memory of one server only, and are lost with it.
    kMemory,
    // Nothing is lost while one server of each chain survives.
    kReplicated,
    // If all servers fail at once, the updates of about `flush_every` are lost, and no others.
    kFlushed,
  };
  Kind kind = Kind::kMemory;
  // kFlushed: the time between the cuts of two flushes. Others: infinite.
  absl::Duration flush_every = absl::InfiniteDuration();

  // "memory", "replicated" or "flushed:2s". INVALID_ARGUMENT: it is something else; the message
  // continues after the flag's name.
  static absl::StatusOr<JobDurability> Parse(absl::string_view text);
  std::string Show() const;

  // INVALID_ARGUMENT: a job with these means cannot keep this promise.
  struct Means {
    bool has_store = false;
    uint32_t servers = 0;
  };
  absl::Status CheckMeans(const Means& means) const;
  // INVALID_ARGUMENT: the table's own durability breaks the promise.
  absl::Status CheckTable(const proto::TableSpec& spec) const;

  friend bool operator==(const JobDurability&, const JobDurability&) = default;
};

}  // namespace covey
