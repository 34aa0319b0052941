// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/sim_transport.h"

#include "absl/strings/str_cat.h"
#include "common/net/transport_conformance.h"

namespace covey::sim {
namespace {

class ConformanceOverSimNetwork : public ConformanceNetwork {
 public:
  explicit ConformanceOverSimNetwork(Codec codec)
      : network_(simulator_, {.tail_chance = 0.1, .codec = codec, .queue_messages = 900}) {}

  std::unique_ptr<Transport> Make(const Options& options) override {
    const HostId host(++made_);
    return std::make_unique<SimTransport>(simulator_, network_, host,
                                          options.listens ? absl::StrCat("sim://", made_) : "");
  }
  std::string DeadEndpoint() override { return "sim://nobody"; }
  absl::Duration Patience() const override { return absl::Seconds(1000); }
  absl::Time Now() const override { return simulator_.now(); }

 private:
  Simulator simulator_{1};
  SimNetwork network_;
  uint32_t made_ = 0;
};

template <Codec codec>
std::unique_ptr<ConformanceNetwork> Make() {
  return std::make_unique<ConformanceOverSimNetwork>(codec);
}

INSTANTIATE_TEST_SUITE_P(SimNetwork, TransportConformance,
                         testing::Values(Make<Codec::kNone>, Make<Codec::kProtobuf>,
                                         Make<Codec::kWire>));

}  // namespace
}  // namespace covey::sim
