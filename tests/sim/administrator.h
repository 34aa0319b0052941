// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/config/elasticity.h"

namespace covey::sim {

// The operator of the cluster: drains servers, scales them down, creates and drops tables of its
// own while others work. After a crash it continues where it was, and retries unanswered requests.
// A refusal that an operator would accept ends the action.
class Administration {
 public:
  // `actions` are in order of time.
  Administration(std::vector<ElasticAction> actions, Violations& violations)
      : actions_(std::move(actions)), violations_(violations) {}

  std::unique_ptr<Script> MakeScript() { return std::make_unique<AdministratorScript>(*this); }
  bool finished() const { return next_ == actions_.size(); }

 private:
  class AdministratorScript : public Script {
   public:
    explicit AdministratorScript(Administration& all) : all_(all) {}
    void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
    absl::Time NextWake() const override;
    bool done() const override { return all_.finished(); }

   private:
    void Answered(const absl::Status& status);

    Administration& all_;
    bool under_way_ = false;
    absl::Time not_before_ = absl::InfinitePast();
  };

  const std::vector<ElasticAction> actions_;
  Violations& violations_;
  size_t next_ = 0;
};

}  // namespace covey::sim
