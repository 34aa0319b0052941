// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/socket_poller.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <utility>

#include "common/base/check.h"

namespace covey {
namespace {

// Waits up to this duration end with a precision of microseconds; longer ones with one of
// milliseconds and a system call less.
constexpr absl::Duration kFineWait = absl::Milliseconds(10);
constexpr absl::Duration kLongestWait = absl::Hours(1);

}  // namespace

SocketPoller::SocketPoller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  COVEY_CHECK(epoll_ >= 0 && wake_up_ >= 0);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  COVEY_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_up_, &event) == 0);
}

SocketPoller::~SocketPoller() {
  close(wake_up_);
  close(epoll_);
}

void SocketPoller::Add(ZmqSocket& socket) {
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = &socket}};
  COVEY_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, socket.descriptor(), &event) == 0);
  MarkReady(socket);
}

void SocketPoller::Remove(ZmqSocket& socket) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, socket.descriptor(), nullptr);
  std::erase(ready_, &socket);
  socket.ready_ = false;
}

void SocketPoller::Watch(int descriptor, std::function<void()> ready) {
  COVEY_CHECK(!watched_);
  watched_ = std::move(ready);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = &watched_}};
  COVEY_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

void SocketPoller::MarkReady(ZmqSocket& socket) {
  if (std::exchange(socket.ready_, true)) return;
  ready_.push_back(&socket);
}

ZmqSocket* SocketPoller::TakeReady() {
  if (ready_.empty()) return nullptr;
  ZmqSocket* socket = ready_.front();
  ready_.pop_front();
  socket->ready_ = false;
  return socket;
}

void SocketPoller::Wait(absl::Duration timeout) {
  while (!ready_.empty() && !ready_.front()->HasInput()) TakeReady();
  int milliseconds = 0;
  if (ready_.empty() && timeout > kFineWait) {
    milliseconds = static_cast<int>(absl::ToInt64Milliseconds(std::min(timeout, kLongestWait)));
  } else if (ready_.empty() && timeout > absl::ZeroDuration()) {
    // epoll_wait counts in milliseconds, but a retry or a released frame may be due sooner.
    pollfd any = {.fd = epoll_, .events = POLLIN, .revents = 0};
    const timespec limit = absl::ToTimespec(timeout);
    ppoll(&any, 1, &limit, nullptr);
  }
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), events.size(), milliseconds);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == &watched_) {
      watched_();
    } else if (events[i].data.ptr != nullptr) {
      MarkReady(*static_cast<ZmqSocket*>(events[i].data.ptr));
    } else {
      uint64_t times;
      [[maybe_unused]] const ssize_t bytes = read(wake_up_, &times, sizeof(times));
    }
  }
}

void SocketPoller::WakeUp() {
  const uint64_t once = 1;
  [[maybe_unused]] const ssize_t bytes = write(wake_up_, &once, sizeof(once));
}

}  // namespace covey
