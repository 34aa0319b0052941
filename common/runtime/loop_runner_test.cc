// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/loop_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace covey {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
const auto kNever = [] { return false; };

// A loop whose work is closures; checks that two threads never run it at once.
class FakeLoop {
 public:
  explicit FakeLoop(absl::Duration own_returns_after = LoopRunner::kOwnReturnsAfter)
      : runner_({.pass = [this](LoopRunner::Runner runner, LoopRunner::Leave leave,
                                absl::Time until) { RunPass(runner, leave, until); },
                 .wake_up = [this] { WakeUp(); }},
                own_returns_after) {}
  ~FakeLoop() { Stop(); }

  void Start() {
    own_ = std::thread([this] {
      is_own_thread_ = true;
      runner_.RunOwn();
    });
  }
  void Stop() {
    runner_.Stop();
    if (own_.joinable()) own_.join();
  }
  void Add(std::function<void()> work) {
    MutexLock lock(mutex_);
    work_.push_back(std::move(work));
    changed_.NotifyAll();
  }
  // Returns once a thread sleeps in a pass: the loop's own, unless another is named.
  void AwaitSleep() { AwaitSleepOf(own_.get_id()); }
  void AwaitSleepOf(std::thread::id thread) {
    MutexLock lock(mutex_);
    while (asleep_ != thread) changed_.WaitFor(mutex_, kPatience);
  }
  LoopRunner& runner() { return runner_; }
  std::thread::id own_id() const { return own_.get_id(); }

 private:
  void RunPass(LoopRunner::Runner runner, LoopRunner::Leave leave, absl::Time until) {
    EXPECT_FALSE(running_.exchange(true)) << "two threads run the loop";
    EXPECT_EQ(runner == LoopRunner::Runner::kOwn, is_own_thread_);
    std::vector<std::function<void()>> work;
    {
      MutexLock lock(mutex_);
      work.swap(work_);
    }
    for (const auto& item : work) item();
    if (!leave()) Sleep(leave, until);
    running_.store(false);
  }

  void Sleep(LoopRunner::Leave leave, absl::Time until) {
    MutexLock lock(mutex_);
    asleep_ = std::this_thread::get_id();
    changed_.NotifyAll();
    while (work_.empty() && !woken_ && !leave() && MonotonicNow() < until) {
      changed_.WaitFor(mutex_, until - MonotonicNow());
    }
    asleep_ = std::thread::id();
    woken_ = false;
  }

  void WakeUp() {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.NotifyAll();
  }

  std::atomic<bool> running_{false};
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  std::thread::id asleep_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  static thread_local inline bool is_own_thread_ = false;
  LoopRunner runner_;
  std::thread own_;
};

TEST(LoopRunnerTest, TheOwnThreadRunsTheLoopWithoutCallers) {
  FakeLoop loop;
  loop.Start();
  std::atomic<bool> done{false};
  std::thread::id ran_on;
  loop.Add([&] {
    ran_on = std::this_thread::get_id();
    done.store(true);
  });
  while (!done.load()) std::this_thread::yield();
  EXPECT_EQ(ran_on, loop.own_id());
}

TEST(LoopRunnerTest, ACallerTakesOverFromTheOwnThread) {
  FakeLoop loop;
  loop.Start();
  loop.AwaitSleep();
  std::atomic<bool> done{false};
  std::function<void()> work = [&, caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == caller) {
      done.store(true);
    } else {
      loop.Add(work);
    }
  };
  loop.Add(work);
  loop.runner().RunUntil([&] { return done.load(); }, MonotonicNow() + kPatience);
  EXPECT_TRUE(done.load());
}

TEST(LoopRunnerTest, WorkThatNobodyWaitsForIsDoneAfterRecallOrSoonAfterTheCaller) {
  for (const bool recalls : {true, false}) {
    FakeLoop loop(recalls ? absl::InfiniteDuration() : LoopRunner::kOwnReturnsAfter);
    loop.Start();
    loop.AwaitSleep();
    // The caller takes the turn away, and gives up.
    loop.runner().RunUntil(kNever, MonotonicNow() + absl::Milliseconds(5));
    std::atomic<bool> ran{false};
    loop.Add([&] { ran.store(true); });
    if (recalls) loop.runner().Recall();
    while (!ran.load()) std::this_thread::yield();
  }
}

TEST(LoopRunnerTest, AnotherCallersResultEndsItsWaitAlthoughTheFirstOneGoesOn) {
  FakeLoop loop;
  loop.Start();
  std::atomic<bool> first_done{false};
  std::atomic<bool> second_done{false};
  std::thread first(
      [&] { loop.runner().RunUntil([&] { return first_done.load(); }, absl::InfiniteFuture()); });
  loop.AwaitSleepOf(first.get_id());
  std::atomic<int> looks{0};
  std::thread second([&] {
    const auto done = [&] { return ++looks, second_done.load(); };
    loop.runner().RunUntil(done, absl::InfiniteFuture());
  });
  // Its second look is the one before it sleeps.
  while (looks.load() < 2) std::this_thread::yield();
  loop.Add([&] {
    second_done.store(true);
    loop.runner().ResultArrived();
  });
  second.join();
  loop.Add([&] { first_done.store(true); });
  first.join();
}

TEST(LoopRunnerTest, StopEndsTheWaitOfAllCallers) {
  FakeLoop loop;
  loop.Start();
  loop.AwaitSleep();
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] { loop.runner().RunUntil(kNever, absl::InfiniteFuture()); });
  }
  loop.Stop();
  for (std::thread& caller : callers) caller.join();
  // After Stop no thread runs the loop.
  loop.Add([] { ADD_FAILURE() << "ran after Stop"; });
  loop.runner().RunUntil(kNever, absl::InfiniteFuture());
}

TEST(LoopRunnerTest, StopEndsTheOwnThreadWhileItIsAway) {
  FakeLoop loop(absl::InfiniteDuration());
  loop.Start();
  loop.AwaitSleep();
  loop.runner().RunUntil(kNever, MonotonicNow() + absl::Milliseconds(5));
  loop.Stop();
}

// Threads that wait, threads that only hand over work, and the loop's own thread, all at once.
TEST(LoopRunnerTest, ManyCallersNeitherOverlapNorLoseWork) {
  constexpr int kThreads = 4;
  constexpr int kOperations = 2'000;
  FakeLoop loop;
  loop.Start();
  int ran = 0;  // no lock: the turns are its order
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, waits = t % 2 == 0] {
      for (int i = 0; i < kOperations; ++i) {
        std::atomic<bool> done{false};
        loop.Add([&] {
          ++ran;
          done.store(true);
          loop.runner().ResultArrived();
        });
        if (waits) {
          loop.runner().RunUntil([&] { return done.load(); }, MonotonicNow() + kPatience);
          EXPECT_TRUE(done.load());
        } else {
          loop.runner().Recall();
          while (!done.load()) std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  loop.Stop();
  EXPECT_EQ(ran, kThreads * kOperations);
}

}  // namespace
}  // namespace covey
