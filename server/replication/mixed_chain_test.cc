// SPDX-License-Identifier: Apache-2.0

// Chains of servers with host memory and servers with a device: 20 host, 21 device, 22 host.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/table/testing/sim_device.h"
#include "server/testing/chain_fixture.h"

namespace covey::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

class MixedChain : public ::testing::Test {
 protected:
  // A server with a device, in place of the one that stands there.
  void GiveDevice(ChainDriver& chain, uint32_t server, const SimDevice::Options& options = {}) {
    chain.options.device = std::make_shared<SimDevice>(options);
    chain.Restart(server);
    chain.options.device = nullptr;
  }
  Message Push(uint64_t step) {
    const float x = static_cast<float>(step) / 7;
    return requests_.GroupPush(1, step, {x, -x, 1 - x, x * x});
  }
  std::vector<float> Values(ChainDriver& chain, uint32_t server) {
    return ShardDriver::ValuesIn(chain.Ask(server, requests_.Pull()));
  }

  // Makes requests; its own loop is not part of the test.
  ShardDriver requests_{TestJob(kAsync, 1)};
};

TEST_F(MixedChain, AllReplicasHoldTheSameBitsAndTakeOverFromEachOther) {
  ChainDriver chain(kAsync, 1, 3, 3);
  chain.job.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  GiveDevice(chain, 1);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 5; ++step) {
    EXPECT_TRUE(StatusOf(chain.Ask(0, Push(step))).ok());
    EXPECT_EQ(chain.Digest(1), chain.Digest(0));
    EXPECT_EQ(chain.Digest(2), chain.Digest(0));
  }
  const std::vector<float> values = Values(chain, 0);
  chain.Kill(0);
  chain.SetChain({{1, false}, {2, false}});
  chain.PublishToAll();
  EXPECT_EQ(Values(chain, 1), values);
  EXPECT_TRUE(StatusOf(chain.Ask(1, Push(6))).ok());
  EXPECT_EQ(chain.Digest(2), chain.Digest(1));
}

TEST_F(MixedChain, AReplicaWithADeviceIsFilledAndFillsOthers) {
  ChainDriver chain(kAsync, 1, 3, 1);
  chain.job.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  GiveDevice(chain, 1);
  chain.PublishToAll();
  for (uint64_t step = 1; step <= 3; ++step) chain.Ask(0, Push(step));
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(20));
  ASSERT_NE(chain.replica(1).content(), nullptr);
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));

  chain.SetChain({{0, false}, {1, false}, {2, true}});
  chain.PublishToAll();
  chain.Ask(0, Push(4));
  chain.Pass(absl::Milliseconds(20));
  ASSERT_NE(chain.replica(2).content(), nullptr);
  EXPECT_EQ(chain.Digest(2), chain.Digest(0));
}

TEST_F(MixedChain, AFullDeviceIsNamedToTheClientAndTriedAgainWithTheNextView) {
  ChainDriver chain(kAsync, 1, 1, 1);
  GiveDevice(chain, 0, {.bytes_max = 7});
  chain.PublishToAll();
  const Message refused = chain.Ask(0, requests_.Pull());
  EXPECT_EQ(StatusOf(refused).code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(StatusOf(refused).message()), HasSubstr("device has no 16 bytes free"));

  // Another shard leaves the device.
  const auto device = std::make_shared<SimDevice>(SimDevice::Options{.bytes_max = 40});
  auto other = device->Allocate(5).value();
  chain.options.device = device;
  chain.Restart(0);
  chain.PublishToAll();
  EXPECT_EQ(StatusOf(chain.Ask(0, requests_.Pull())).code(), Code::kResourceExhausted);
  other.reset();
  EXPECT_EQ(StatusOf(chain.Ask(0, requests_.Pull())).code(), Code::kResourceExhausted);
  chain.job.view.set_epoch(chain.job.view.epoch() + 1);
  chain.PublishToAll();
  EXPECT_TRUE(StatusOf(chain.Ask(0, requests_.Pull())).ok());
}

TEST_F(MixedChain, AJoiningReplicaWithoutRoomStaysEmptyAndHarmsNobody) {
  ChainDriver chain(kAsync, 1, 2, 1);
  GiveDevice(chain, 1, {.bytes_max = 7});
  chain.PublishToAll();
  chain.Ask(0, Push(1));
  chain.SetChain({{0, false}, {1, true}});
  chain.PublishToAll();
  EXPECT_TRUE(StatusOf(chain.Ask(0, Push(2))).ok());
  chain.Pass(absl::Seconds(1));
  EXPECT_EQ(chain.replica(1).content(), nullptr);
  EXPECT_THAT(chain.Reports(), IsEmpty());
}

}  // namespace
}  // namespace covey::server
