// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/cluster/limits.h"
#include "common/net/message.h"
#include "common/net/transport.h"
#include "common/store/folder.h"

namespace covey {

// The store of snapshots as actors see it: StoreRequest messages go in, StoreReply messages come
// out, one for each. A thread of its own carries the operations out one after the other, in the
// order of their arrival, because a disk may take seconds and no loop waits for it.
//
// Replies are those of AnswerStoreRequest.
//
// The queue is bounded: a request beyond `queue_bytes_max` or `queue_requests_max` is answered
// RESOURCE_EXHAUSTED at once and has no effect, so senders pace themselves. What counts are the
// bytes to be written and to be read, until the operation has ended. A single larger request is
// taken when nothing waits. Frames are not copied: they must not be in lent memory (Buffer::Kept).
//
// Thread-safe.
class StoreThread : public MessagePort {
 public:
  struct Options {
    uint64_t queue_bytes_max = kStoreQueueBytesDefault;
    size_t queue_requests_max = kStoreQueueRequestsMax;
  };
  // Takes a reply. Called on the store's thread; for a request beyond the limits, inside Send. It
  // does not block.
  using Receiver = std::function<void(Message reply)>;

  StoreThread(const Options& options, std::unique_ptr<Folder> folder, Receiver receiver);
  // Stops.
  ~StoreThread() override;

  // Never blocks. After Stop the message is dropped.
  void Send(Message message) override;

  // Waits until all requests so far have been carried out and answered, for at most this duration.
  // False: some were not. Not on the store's thread.
  bool Drain(absl::Duration at_most);

  // Lets the operation in progress end, then joins the thread. Requests that wait are neither
  // carried out nor answered; files that are not synced are closed and left behind. Blocks as long
  // as that operation does. Idempotent; not on the store's thread.
  void Stop();

 private:
  struct Request {
    Message message;
    uint64_t bytes = 0;
  };

  void Run();
  // Waits for a request; false once stopped.
  bool Take(Request& request);
  // The operation has ended: its bytes no longer count.
  void Release(uint64_t bytes);

  const Options options_;
  const Receiver receiver_;
  // Owned by the thread.
  const std::unique_ptr<Folder> folder_;

  Mutex mutex_;
  CondVar changed_;
  CondVar drained_;
  std::deque<Request> waiting_ ABSL_GUARDED_BY(mutex_);
  // Of the requests that wait, and of the one in progress.
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace covey
