// SPDX-License-Identifier: Apache-2.0
#include "common/store/store_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/store/store_requests.h"

namespace covey {
namespace {

constexpr int kNice = 10;

}  // namespace

StoreThread::StoreThread(const Options& options, std::unique_ptr<Folder> folder, Receiver receiver)
    : options_(options),
      receiver_(std::move(receiver)),
      folder_(std::move(folder)),
      thread_([this] { Run(); }) {}

StoreThread::~StoreThread() { Stop(); }

void StoreThread::Send(Message message) {
  const uint64_t bytes = BytesOfStoreRequest(message);
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    const bool is_idle = waiting_.empty() && bytes_ == 0;
    const bool has_room =
        bytes_ + bytes <= options_.queue_bytes_max && waiting_.size() < options_.queue_requests_max;
    if (is_idle || has_room) {
      bytes_ += bytes;
      waiting_.push_back({std::move(message), bytes});
      changed_.NotifyOne();
      return;
    }
  }
  Message reply = StoreReplyTo(message);
  SetStatus(absl::ResourceExhaustedError(
                absl::StrCat("the store's queue is full (", options_.queue_bytes_max, " bytes, ",
                             options_.queue_requests_max, " requests); send again after a reply")),
            reply);
  receiver_(std::move(reply));
}

bool StoreThread::Drain(absl::Duration at_most) {
  const absl::Time until = MonotonicNow() + at_most;
  MutexLock lock(mutex_);
  while (!stopped_ && (is_busy_ || !waiting_.empty())) {
    const absl::Duration left = until - MonotonicNow();
    if (left <= absl::ZeroDuration()) return false;
    drained_.WaitFor(mutex_, left);
  }
  return waiting_.empty();
}

void StoreThread::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

bool StoreThread::Take(Request& request) {
  MutexLock lock(mutex_);
  is_busy_ = false;
  if (waiting_.empty()) drained_.NotifyAll();
  while (waiting_.empty() && !stopped_) changed_.WaitFor(mutex_, absl::InfiniteDuration());
  if (stopped_) return false;
  request = std::move(waiting_.front());
  waiting_.pop_front();
  is_busy_ = true;
  return true;
}

void StoreThread::Release(uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ -= bytes;
}

void StoreThread::Run() {
  pthread_setname_np(pthread_self(), "store");
  // Training goes first where there are fewer cores than threads.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  Request request;
  while (Take(request)) {
    Message reply = AnswerStoreRequest(request.message, *folder_);
    // First the memory, then the reply: its receiver may use what has become free.
    request.message = {};
    Release(request.bytes);
    receiver_(std::move(reply));
  }
}

}  // namespace covey
