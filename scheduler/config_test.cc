#include "scheduler/config.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

TEST(ConfigTest, DefaultsAreValid) { EXPECT_TRUE(Config().Validate().ok()); }

TEST(ConfigTest, NamesWhatIsWrong) {
  const struct {
    Config config;
    std::string named;
  } cases[] = {
      {{.job_name = ""}, "job = ''"},
      {{.servers = 0}, "servers = 0"},
      {{.workers_per_group = 0}, "workers = 0"},
      {{.groups = 5000, .workers_per_group = 2}, "groups = 5000"},
      {{.heartbeat = absl::ZeroDuration()}, "heartbeat = 0"},
      {{.silence_min = absl::Milliseconds(600)}, "silence-min = 600ms"},
      {{.port = 65536}, "port = 65536"},
  };
  for (const auto& [config, named] : cases) {
    const absl::Status status = config.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(status.message().find(named), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace covey::scheduler
