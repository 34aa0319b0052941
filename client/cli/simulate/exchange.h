// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "client/cli/simulate/fabric.h"
#include "client/cli/simulate/membership.h"
#include "common/simulation/simulator.h"

namespace covey::cli {

// One step of one group, from gradients to values:
//
//   Submit (each rank) ──▶ reduce ──▶ push to the servers ──▶ arrived()
//                             └──────▶ Answer, from the servers ──▶ spread ──▶ gathered (each rank)
//
// Actor-confined. Deterministic. Kept alive by the simulator's events until the last one has run.
class Exchange {
 public:
  struct Options {
    double bytes = 0;
    // Whether the sums go to the servers.
    bool push = true;
    // Whether the values come from the servers, so that nothing is spread before Answer.
    bool await = true;
  };
  struct Listener {
    // All pushes have arrived at the servers.
    std::function<void()> arrived;
    // The last part is reduced.
    std::function<void()> reduced;
    // The values have arrived where they are spread from.
    std::function<void()> returned;
    // `rank` has all values.
    std::function<void(uint32_t rank)> gathered;
  };

  virtual ~Exchange() = default;

  // `rank` has its gradient, or nothing to add. Once per rank.
  virtual void Submit(uint32_t rank) = 0;
  // The servers reply. Once, when awaited; before or after the last Submit.
  virtual void Answer() = 0;
};

// State that all exchanges of a group share; outlives them.
struct ExchangeWorld {
  Simulator& simulator;
  Fabric& fabric;
  // When the group's links have finished the previous exchanges, where these are not simulated
  // message by message.
  absl::Time& links_free;
};

// Each message queues on each link.
std::shared_ptr<Exchange> MakeMessageExchange(ExchangeWorld world,
                                              std::shared_ptr<const Membership> membership,
                                              Exchange::Options options,
                                              Exchange::Listener listener);

// Uses the membership's times; all members wait for the last one. Exchanges of a group share its
// links: the next one's bytes come after those of the previous one.
std::shared_ptr<Exchange> MakeModelExchange(ExchangeWorld world,
                                            std::shared_ptr<const Membership> membership,
                                            Exchange::Options options, Exchange::Listener listener);

}  // namespace covey::cli
