// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "client/cli/simulate/exchange.h"

namespace covey::cli {
namespace {

class ModelExchange final : public Exchange, public std::enable_shared_from_this<ModelExchange> {
 public:
  ModelExchange(ExchangeWorld world, std::shared_ptr<const Membership> membership, Options options,
                Listener listener)
      : world_(world),
        membership_(std::move(membership)),
        options_(options),
        listener_(std::move(listener)) {}

  void Submit(uint32_t) override {
    if (++submitted_ < membership_->size()) return;
    world_.simulator.At(Pass(membership_->reduce),
                        [self = shared_from_this()] { self->OnReduced(); });
  }

  void Answer() override {
    answered_ = true;
    if (reduced_) Return();
  }

 private:
  absl::Time Pass(const Membership::Time& time) {
    world_.links_free = std::max(world_.simulator.now(), world_.links_free) + time.transfer;
    return world_.links_free + time.latency;
  }

  void OnReduced() {
    reduced_ = true;
    for (uint32_t rack = 0; rack < membership_->uplink_bytes.size(); ++rack) {
      world_.fabric.CountUplink(rack, membership_->uplink_bytes[rack]);
    }
    listener_.reduced();
    if (options_.push) {
      const absl::Time arrival = world_.fabric.AllSendToServers(world_.simulator.now(),
                                                                membership_->nodes, options_.bytes);
      world_.simulator.At(arrival, [self = shared_from_this()] { self->listener_.arrived(); });
    }
    if (!options_.await) {
      Spread();
    } else if (answered_) {
      Return();
    }
  }

  void Return() {
    const absl::Time arrival = world_.fabric.AllReceiveFromServers(
        world_.simulator.now(), membership_->nodes, options_.bytes);
    world_.simulator.At(arrival, [self = shared_from_this()] { self->Spread(); });
  }

  void Spread() {
    listener_.returned();
    world_.simulator.At(Pass(membership_->spread), [self = shared_from_this()] {
      for (uint32_t rank = 0; rank < self->membership_->size(); ++rank) {
        self->listener_.gathered(rank);
      }
    });
  }

  const ExchangeWorld world_;
  const std::shared_ptr<const Membership> membership_;
  const Options options_;
  const Listener listener_;
  uint32_t submitted_ = 0;
  bool reduced_ = false;
  bool answered_ = false;
};

}  // namespace

std::shared_ptr<Exchange> MakeModelExchange(ExchangeWorld world,
                                            std::shared_ptr<const Membership> membership,
                                            Exchange::Options options,
                                            Exchange::Listener listener) {
  return std::make_shared<ModelExchange>(world, std::move(membership), options,
                                         std::move(listener));
}

}  // namespace covey::cli
