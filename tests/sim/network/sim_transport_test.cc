// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/sim_transport.h"

#include <cstdint>
#include <utility>
#include <vector>

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

TEST(SimTransportTest, FramesAreLentAndTheSenderHasItsOwnAtOnce) {
  Simulator simulator{1};
  SimNetwork network(simulator, {.retry = 1});
  SimTransport alice(simulator, network, HostId(1), "");
  SimTransport bob(simulator, network, HostId(2), "sim://bob");
  const Address address{NodeId(2), 0};
  alice.SetRoute(address, bob.endpoint());
  Message message;
  message.set_to(address);
  message.envelope.mutable_push_request();
  const Buffer frame = Buffer::CopyOf(std::vector<uint8_t>{1, 2, 3});
  message.frames.push_back(frame);
  alice.Send(std::move(message));
  std::vector<Message> received;
  const auto receive = [&] {
    bob.Wait(absl::Seconds(1));
    bob.Receive(1, [&](Message arrived) { received.push_back(std::move(arrived)); });
  };
  receive();
  receive();
  ASSERT_EQ(received.size(), 2u);
  for (const Message& arrived : received) {
    ASSERT_EQ(arrived.frames.size(), 1u);
    EXPECT_TRUE(arrived.frames[0].is_lent());
    EXPECT_EQ(arrived.frames[0].bytes()[2], 3);
  }
  EXPECT_TRUE(frame.IsUnique());
}

}  // namespace
}  // namespace covey::sim
