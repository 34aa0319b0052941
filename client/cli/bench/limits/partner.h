// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/process/child_process.h"

namespace covey::cli {

// The other process of a limit: this program again, as `covey bench --limit-partner SPEC`. It
// sleeps while its limit has no turn, and dies with this object or with this process. Confined to
// one thread.
class Partner {
 public:
  // Returns when the partner has printed its first line. UNAVAILABLE: it did not.
  static absl::StatusOr<std::unique_ptr<Partner>> Start(const std::string& spec);

  // Its first line: an address, by which its limit reaches it.
  const std::string& address() const { return address_; }
  pid_t pid() const { return process_->pid(); }

 private:
  Partner(std::unique_ptr<ChildProcess> process, std::string address)
      : process_(std::move(process)), address_(std::move(address)) {}

  const std::unique_ptr<ChildProcess> process_;
  const std::string address_;
};

// For partners: prints the first line.
absl::Status PrintAddress(const std::string& address);

}  // namespace covey::cli
