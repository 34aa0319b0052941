// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/control_methods.h"
#include "common/net/message.h"

namespace covey::scheduler {

// Who has done what to the job.
struct AuditEntry {
  std::string who;         // "admin of job mnist"; without certificates "node 5" or "somebody"
  absl::string_view call;  // "Drain"
  std::string target;  // the node, producer, table or snapshot that it names; empty = the whole job
  // Not OK: the caller has no right to it, and why.
  absl::Status outcome;
  // Refusals of the same call of the same caller since the entry before, which had none of their
  // own.
  uint64_t repeated = 0;
};

// Tells of the calls that administer a job, and of those that were refused for want of a right. A
// caller that repeats a refused call gets an entry per minute, so it cannot fill the log.
// Actor-confined, deterministic.
class AuditTrail {
 public:
  static constexpr absl::Duration kRefusalEvery = absl::Minutes(1);
  // Callers whose refusals are counted; beyond it each refusal has an entry.
  static constexpr size_t kCountedMax = 1024;

  void OnEntry(std::function<void(const AuditEntry&)> callback) { on_entry_ = std::move(callback); }
  // A call has come; `outcome`: whether its caller has the right to it.
  void Add(absl::Time now, const ControlMethod& method, const Message& request,
           const absl::Status& outcome);
  // Calls that were refused so far, also those without an entry of their own.
  uint64_t refused() const { return refused_; }

 private:
  struct Refusals {
    absl::Time next_entry;
    uint64_t since = 0;
  };
  // Whether this refusal has an entry; then `repeated` are those before it that had none.
  bool IsDue(absl::Time now, const AuditEntry& entry, uint64_t& repeated);

  std::function<void(const AuditEntry&)> on_entry_;
  uint64_t refused_ = 0;
  std::map<std::pair<std::string, absl::string_view>, Refusals> refusals_;  // by who and call
};

}  // namespace covey::scheduler
