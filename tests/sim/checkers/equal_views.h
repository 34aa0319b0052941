// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "common/cluster/view.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a node that has received news of the view holds, byte for byte, the view that the
// scheduler has published under the same epoch, whether the node was told the view or its changes.
//
// Actor-confined.
class EqualViews : public Observer {
 public:
  // The view that the node of this process holds; null = it holds none.
  using HeldBy = std::function<const ClusterView*(absl::string_view process)>;

  EqualViews(HeldBy held_by, Violations& violations)
      : held_by_(std::move(held_by)), violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;
  void OnReceived(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  const HeldBy held_by_;
  Violations& violations_;
  std::map<uint64_t, std::string> published_;  // by epoch
};

}  // namespace covey::sim
