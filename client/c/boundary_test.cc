// SPDX-License-Identifier: Apache-2.0
#include "client/c/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

namespace covey::c {
namespace {

using ::testing::HasSubstr;

TEST(Report, WritesCodeAndSentence) {
  covey_error error = COVEY_ERROR_INIT;
  EXPECT_EQ(COVEY_NOT_FOUND, Report(absl::NotFoundError("no table 'w'"), &error));
  EXPECT_EQ(COVEY_NOT_FOUND, error.code);
  EXPECT_STREQ("no table 'w'", error.message);
  EXPECT_EQ(COVEY_OK, Report(absl::OkStatus(), &error));
  EXPECT_STREQ("", error.message);
  EXPECT_EQ(COVEY_ABORTED, Report(absl::AbortedError("x"), nullptr));
}

TEST(Report, CutsAtACharacter) {
  covey_error error = COVEY_ERROR_INIT;
  const std::string start(sizeof(error.message) - 2, 'a');
  Report(absl::InternalError(start + "ä and more"), &error);
  EXPECT_EQ(start, error.message);
}

TEST(Report, WritesNothingBeyondTheProgramsStruct) {
  covey_error error = COVEY_ERROR_INIT;
  error.struct_size = offsetof(covey_error, message) + 4;
  error.message[4] = '!';
  Report(absl::InternalError("abcdefgh"), &error);
  EXPECT_STREQ("abc", error.message);
  EXPECT_EQ('!', error.message[4]);
}

TEST(Guard, TurnsExceptionsIntoErrors) {
  covey_error error = COVEY_ERROR_INIT;
  EXPECT_EQ(COVEY_RESOURCE_EXHAUSTED,
            Guard(&error, []() -> absl::Status { throw std::bad_alloc(); }));
  EXPECT_EQ(COVEY_INTERNAL,
            Guard(&error, []() -> absl::Status { throw std::runtime_error("reason"); }));
  EXPECT_STREQ("reason", error.message);
  EXPECT_EQ(COVEY_INTERNAL, Guard(&error, []() -> absl::Status { throw 1; }));
}

// As an older or a newer header would declare it.
struct OlderOptions {
  uint32_t struct_size = sizeof(OlderOptions);
  int32_t format = COVEY_INT8;
};
struct NewerOptions {
  covey_push_options known = COVEY_PUSH_OPTIONS_INIT;
  uint64_t added = 0;
  NewerOptions() { known.struct_size = sizeof(NewerOptions); }
};

absl::StatusOr<covey_push_options> Copied(const void* given) {
  return OptionsOf<covey_push_options>(static_cast<const covey_push_options*>(given), "options",
                                       COVEY_PUSH_OPTIONS_INIT);
}

TEST(OptionsOf, TakesTheDefaults) {
  EXPECT_EQ(1u, Copied(nullptr)->samples);
  const OlderOptions older;
  const auto options = Copied(&older);
  EXPECT_EQ(COVEY_INT8, options->format);
  EXPECT_EQ(1u, options->samples);
}

TEST(OptionsOf, RefusesWhatThisLibraryDoesNotKnow) {
  NewerOptions newer;
  newer.known.samples = 7;
  EXPECT_EQ(7u, Copied(&newer)->samples);
  newer.added = 1;
  EXPECT_THAT(Copied(&newer).status().message(), HasSubstr("older than the program"));
}

TEST(OptionsOf, RefusesAStructWithoutItsSize) {
  covey_push_options options = COVEY_PUSH_OPTIONS_INIT;
  for (const uint32_t size : {0u, 3u, 1u << 20}) {
    options.struct_size = size;
    EXPECT_THAT(Copied(&options).status().message(), HasSubstr("_INIT")) << size;
  }
}

TEST(Return, WritesWhatTheProgramsHeaderKnows) {
  covey_result result = COVEY_RESULT_INIT;
  result.struct_size = offsetof(covey_result, version);
  result.version = 5;
  Return(covey_result{.durable = 1, .version = 9}, &result);
  EXPECT_EQ(1u, result.durable);
  EXPECT_EQ(5u, result.version);
  EXPECT_EQ(offsetof(covey_result, version), result.struct_size);
}

TEST(Times, AreChecked) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(absl::InfiniteDuration(), *WaitOf(COVEY_FOREVER));
  EXPECT_EQ(absl::Milliseconds(50), *WaitOf(0.05));
  EXPECT_FALSE(WaitOf(nan).ok());
  EXPECT_EQ(absl::ZeroDuration(), *DeadlineOf(0));
  EXPECT_EQ(absl::InfiniteDuration(), *DeadlineOf(HUGE_VAL));
  EXPECT_FALSE(DeadlineOf(-1).ok());
  EXPECT_FALSE(DeadlineOf(nan).ok());
}

TEST(Creator, RefusesAChildByFork) {
  const Creator creator;
  EXPECT_TRUE(creator.Check().ok());
  const pid_t child = fork();
  if (child == 0) _exit(creator.Check().ok() || creator.is_this() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
}

TEST(SignalsBlocked, LastsAsLongAsTheObject) {
  const auto blocks_interrupt = [] {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return sigismember(&now, SIGINT) == 1;
  };
  {
    const SignalsBlocked blocked;
    EXPECT_TRUE(blocks_interrupt());
  }
  EXPECT_FALSE(blocks_interrupt());
}

}  // namespace
}  // namespace covey::c
