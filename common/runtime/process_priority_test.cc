// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/process_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "common/base/set_once.h"
#include "common/runtime/config_file.h"

namespace covey {
namespace {

int NiceOfThisThread() { return getpriority(PRIO_PROCESS, 0); }

// Each test in a process of its own, because a priority can not be raised again.
TEST(ProcessPriorityDeathTest, LowIsNiceForAllThreads) {
  EXPECT_EXIT(
      {
        const SetOnce<int> applied;
        int of_an_earlier_thread = -1;
        std::thread earlier([&] {
          applied.WaitFor(absl::Seconds(20));
          of_an_earlier_thread = NiceOfThisThread();
        });
        ApplyPriority(ProcessPriority::kLow);
        applied.Set(1);
        earlier.join();
        int of_a_later_thread = -1;
        std::thread([&] { of_a_later_thread = NiceOfThisThread(); }).join();
        const bool all_are =
            NiceOfThisThread() >= 10 && of_an_earlier_thread >= 10 && of_a_later_thread >= 10;
        std::exit(all_are ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessPriorityDeathTest, NothingRaisesAPriority) {
  EXPECT_EXIT(
      {
        setpriority(PRIO_PROCESS, 0, 15);
        ApplyPriority(ProcessPriority::kLow);
        ApplyPriority(ProcessPriority::kNormal);
        std::exit(NiceOfThisThread() == 15 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessPriorityTest, IsAnOption) {
  ProcessPriority priority = ProcessPriority::kNormal;
  ConfigFile options("test", "A test.");
  AddPriority(options, &priority);
  const auto no_environment = [](const char*) -> const char* { return nullptr; };
  EXPECT_TRUE(options.Load({"--priority", "low"}, no_environment).ok());
  EXPECT_EQ(priority, ProcessPriority::kLow);
  const auto from_environment = [](const char* name) -> const char* {
    return std::string(name) == "COVEY_PRIORITY" ? "normal" : nullptr;
  };
  EXPECT_TRUE(options.Load({}, from_environment).ok());
  EXPECT_EQ(priority, ProcessPriority::kNormal);
  const absl::Status status = options.Load({"--priority=high"}, no_environment).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("neither normal nor low"), absl::string_view::npos);
}

}  // namespace
}  // namespace covey
