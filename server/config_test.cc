// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

Config Good() {
  Config config;
  config.scheduler = "127.0.0.1:4000";
  return config;
}

// The advertised places of a server with two data loops.
std::function<void(Config&)> Advertise(const std::string& places) {
  return [places](Config& config) {
    config.loops = 2;
    config.advertise_data = places;
  };
}

TEST(Config, DefaultsAreValidOnceTheSchedulerIsKnown) {
  EXPECT_TRUE(Good().Validate().ok()) << Good().Validate();
  EXPECT_FALSE(Config().Validate().ok());
}

TEST(Config, EachDataLoopIsReachedSomewhere) {
  Config config = Good();
  Advertise("10.0.0.1:4000,forwarder.example:4001")(config);
  EXPECT_TRUE(config.Validate().ok()) << config.Validate();
}

TEST(Config, NamesTheSettingThatIsWrong) {
  struct Case {
    std::string setting;
    std::function<void(Config&)> spoil;
  };
  const std::vector<Case> cases = {
      {"--scheduler", [](Config& config) { config.scheduler = "nowhere"; }},
      {"--job", [](Config& config) { config.job = ""; }},
      {"--rank", [](Config& config) { config.rank = -2; }},
      {"--labels", [](Config& config) { config.labels = std::string(1000, 'x'); }},
      {"--transport", [](Config& config) { config.transport = "pigeon"; }},
      {"--table-memory", [](Config& config) { config.table_memory = "gpu"; }},
      {"--data-host", [](Config& config) { config.data_host = ""; }},
      {"--data-port", [](Config& config) { config.data_port = 65536; }},
      {"--loops", [](Config& config) { config.loops = 256; }},
      {"--advertise-data", [](Config& config) { config.advertise_data = "10.0.0.1:4000"; }},
      {"--advertise-data", Advertise("10.0.0.1:4000")},
      {"--advertise-data", Advertise("10.0.0.1:4000,:4001")},
      {"--advertise-data", Advertise("10.0.0.1:4000,10.0.0.1")},
      {"--advertise-data", Advertise("10.0.0.1:0,10.0.0.1:4001")},
      {"--advertise-data", Advertise("10.0.0.1:4000,10.0.0.1:65536")},
      {"--advertise-data",
       [](Config& config) {
         Advertise("10.0.0.1:4000,10.0.0.1:4001")(config);
         config.transport = "ipc";
       }},
      {"--spin", [](Config& config) { config.spin = absl::Seconds(1); }},
      {"--spare-bytes-max", [](Config& config) { config.spare_bytes_max = 1; }},
      {"--queued-bytes-max", [](Config& config) { config.queued_bytes_max = 1 << 20; }},
      {"--rate-max", [](Config& config) { config.rate_max = 1 << 10; }},
      {"--rate-max", [](Config& config) { config.rate_max = uint64_t{1} << 41; }},
      {"--table-bytes-max", [](Config& config) { config.table_bytes_max = 1; }},
      {"--drain-deadline", [](Config& config) { config.drain_deadline = -absl::Seconds(1); }},
      {"--join-deadline", [](Config& config) { config.join_deadline = absl::ZeroDuration(); }},
  };
  for (const Case& wrong : cases) {
    Config config = Good();
    wrong.spoil(config);
    const absl::Status status = config.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.setting;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(wrong.setting));
  }
}

}  // namespace
}  // namespace covey::server
