// SPDX-License-Identifier: Apache-2.0
#include "worker/config.h"

#include <map>
#include <string>

#include "common/runtime/config_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

WorkerConfig Valid() {
  WorkerConfig config;
  config.cluster.scheduler = "127.0.0.1:7000";
  return config;
}

TEST(WorkerConfigTest, TakesItsDefaults) { EXPECT_TRUE(Valid().Validate().ok()); }

TEST(WorkerConfigTest, NamesTheFieldThatIsWrong) {
  WorkerConfig config;
  EXPECT_THAT(config.Validate().message(), HasSubstr("scheduler"));
  config.cluster.scheduler = "a:7000,b";
  EXPECT_THAT(config.Validate().message(),
              HasSubstr("'a:7000,b'; give HOST:PORT, separate several by"));
  config.cluster.scheduler = "a:7000,b:7000";
  EXPECT_TRUE(config.Validate().ok());
  config = Valid();
  config.transport = "pigeon";
  EXPECT_THAT(config.Validate().message(), HasSubstr("transport is 'pigeon'"));
  config = Valid();
  config.form_deadline = absl::ZeroDuration();
  EXPECT_THAT(config.Validate().message(), HasSubstr("form_deadline"));
  config = Valid();
  config.collective_wire = WireFormat::kTopBlock;
  EXPECT_THAT(config.Validate().message(), HasSubstr("collective_wire is topk, which leaves out"));
  config = Valid();
  config.data_host = "";
  EXPECT_THAT(config.Validate().message(), HasSubstr("data_host"));
  config = Valid();
  config.metrics = "9464";
  EXPECT_THAT(config.Validate().message(), HasSubstr("--metrics"));
  config.metrics = "127.0.0.1:0";
  EXPECT_TRUE(config.Validate().ok());
  config.metrics = "0.0.0.0:9464";
  EXPECT_TRUE(absl::IsFailedPrecondition(config.Validate())) << "other hosts reach it";
  config.insecure = true;
  EXPECT_TRUE(config.Validate().ok());
}

TEST(WorkerConfigTest, ReadsTheLaunchersEnvironment) {
  const std::map<std::string, std::string> environment = {{"COVEY_SCHEDULER", "10.0.0.1:7000"},
                                                          {"COVEY_JOB", "run"},
                                                          {"COVEY_RANK", "3"},
                                                          {"COVEY_LABELS", "zone/rack/a/0"},
                                                          {"COVEY_DATA_HOST", "10.0.0.2"},
                                                          {"COVEY_TRANSPORT", "ipc"},
                                                          {"COVEY_METRICS", "127.0.0.1:9464"},
                                                          {"COVEY_COLLECTIVE", "halving-doubling"},
                                                          {"COVEY_COLLECTIVE_WIRE", "bfloat16"}};
  WorkerConfig config;
  ConfigFile options("program", "Trains.");
  config.AddTo(options);
  const auto outcome = options.Load({}, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(config.cluster.scheduler, "10.0.0.1:7000");
  EXPECT_EQ(config.cluster.job, "run");
  EXPECT_EQ(config.cluster.rank, 3);
  EXPECT_EQ(config.cluster.labels, "zone/rack/a/0");
  EXPECT_EQ(config.data_host, "10.0.0.2");
  EXPECT_EQ(config.transport, "ipc");
  EXPECT_EQ(config.metrics, "127.0.0.1:9464");
  EXPECT_EQ(config.collective, Algorithm::kHalvingDoubling);
  EXPECT_EQ(config.collective_wire, WireFormat::kBfloat16);
}

TEST(WorkerConfigTest, NamesTheAlgorithmsThereAre) {
  WorkerConfig config;
  ConfigFile options("program", "Trains.");
  config.AddTo(options);
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  EXPECT_THAT(options.Load({"--collective=rings"}, nothing).status().message(),
              HasSubstr("auto, direct, ring"));
  EXPECT_THAT(options.Load({"--collective-wire=fp8"}, nothing).status().message(),
              HasSubstr("float32, float16"));
}

}  // namespace
}  // namespace covey::worker
