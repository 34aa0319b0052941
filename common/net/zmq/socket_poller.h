// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>

#include "absl/time/time.h"
#include "common/net/zmq/zmq_socket.h"

namespace covey {

// Says which of many sockets may have input, and blocks until one has, without a zmq_poll over all
// of them. A socket's descriptor is readable while libzmq has an event that no call on the socket
// has consumed; any call may consume it, even a send.
//
// The sockets that may have input wait in a list for their turn. Invariant: when Wait blocks, a
// socket outside the list has been read until it was empty and not used since, so its descriptor
// shows the next event. The caller therefore marks a socket ready before it uses it in any other
// way than to read it in its turn.
//
// Actor-confined, except WakeUp. A socket is removed before it is destroyed, unless the poller is
// not used again.
class SocketPoller {
 public:
  SocketPoller();
  ~SocketPoller();
  SocketPoller(const SocketPoller&) = delete;
  SocketPoller& operator=(const SocketPoller&) = delete;

  // From now on the socket is polled, and at first it may have input.
  void Add(ZmqSocket& socket);
  void Remove(ZmqSocket& socket);

  // From now on Wait also returns while `descriptor` is readable, and calls `ready` then. At most
  // once.
  void Watch(int descriptor, std::function<void()> ready);

  // Puts the socket at the end of the list, unless it is there already.
  void MarkReady(ZmqSocket& socket);
  // Takes the first socket from the list; null when the list is empty. The caller tries to read one
  // message, and marks the socket ready again if there was one.
  ZmqSocket* TakeReady();
  bool HasReady() const { return !ready_.empty(); }

  // Blocks until a socket may have input, WakeUp was called, or `timeout` has passed.
  void Wait(absl::Duration timeout);
  // Makes the current or the next Wait return. Thread-safe.
  void WakeUp();
  // An eventfd; writing to it is WakeUp. Does not block.
  int wake_up_descriptor() const { return wake_up_; }

 private:
  const int epoll_;
  const int wake_up_;
  std::function<void()> watched_;
  std::deque<ZmqSocket*> ready_;
};

}  // namespace covey
