// SPDX-License-Identifier: Apache-2.0
#include "common/net/loopback_transport.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey {

// The messages that wait for one transport. Thread-safe.
class LoopbackMailbox {
 public:
  explicit LoopbackMailbox(size_t capacity) : capacity_(capacity) {}

  // False when full. `sent_to` is the address the sender's route leads to.
  bool Put(const Address& sent_to, Message message) {
    MutexLock lock(mutex_);
    if (letters_.size() >= capacity_) return false;
    letters_.push_back({sent_to, std::move(message)});
    arrived_.NotifyOne();
    return true;
  }

  // Removes messages that `connection` sent to `sent_to` and that were not received yet. They are
  // destroyed outside the lock, because dropping a frame runs its owner's code.
  void TakeBack(uint64_t connection, const Address& sent_to) {
    std::deque<Letter> kept;
    std::deque<Letter> dropped;
    MutexLock lock(mutex_);
    for (Letter& letter : letters_) {
      const bool mine = letter.message.connection == connection && letter.sent_to == sent_to;
      (mine ? dropped : kept).push_back(std::move(letter));
    }
    letters_ = std::move(kept);
  }

  bool Take(Message& message) {
    MutexLock lock(mutex_);
    if (letters_.empty()) return false;
    message = std::move(letters_.front().message);
    letters_.pop_front();
    return true;
  }

  bool empty() {
    MutexLock lock(mutex_);
    return letters_.empty();
  }

  // Returns when a message is there, WakeUp was called, or `timeout` has passed, or spuriously.
  void Wait(absl::Duration timeout) {
    MutexLock lock(mutex_);
    if (letters_.empty() && !woken_ && timeout > absl::ZeroDuration()) {
      arrived_.WaitFor(mutex_, timeout);
    }
    woken_ = false;
  }

  void WakeUp() {
    MutexLock lock(mutex_);
    woken_ = true;
    arrived_.NotifyOne();
  }

 private:
  struct Letter {
    Address sent_to;
    Message message;
  };

  const size_t capacity_;
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Letter> letters_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

uint64_t LoopbackHub::Join(const std::string& endpoint, std::shared_ptr<LoopbackMailbox> mailbox) {
  MutexLock lock(mutex_);
  if (!endpoint.empty()) COVEY_CHECK(endpoints_.emplace(endpoint, mailbox).second);
  connections_.emplace(++last_connection_, std::move(mailbox));
  return last_connection_;
}

void LoopbackHub::Leave(const std::string& endpoint, uint64_t connection) {
  MutexLock lock(mutex_);
  endpoints_.erase(endpoint);
  connections_.erase(connection);
}

std::shared_ptr<LoopbackMailbox> LoopbackHub::AtEndpoint(const std::string& endpoint) {
  MutexLock lock(mutex_);
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() ? nullptr : found->second;
}

std::shared_ptr<LoopbackMailbox> LoopbackHub::AtConnection(uint64_t connection) {
  MutexLock lock(mutex_);
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second;
}

class LoopbackTransport : public Transport {
 public:
  LoopbackTransport(LoopbackHub& hub, std::string endpoint)
      : hub_(hub),
        endpoint_(std::move(endpoint)),
        mailbox_(std::make_shared<LoopbackMailbox>(hub.options_.queue_messages)),
        connection_(hub.Join(endpoint_, mailbox_)) {}
  ~LoopbackTransport() override { hub_.Leave(endpoint_, connection_); }

  std::string endpoint() const override { return endpoint_; }

  void SetRoute(const Address& peer, const std::string& endpoint) override {
    const auto found = routes_.find(peer);
    if (found != routes_.end() && found->second == endpoint) return;
    DropRoute(peer);
    routes_.emplace(peer, endpoint);
  }

  void DropRoute(const Address& peer) override {
    const auto found = routes_.find(peer);
    if (found == routes_.end()) return;
    if (const auto mailbox = hub_.AtEndpoint(found->second)) mailbox->TakeBack(connection_, peer);
    routes_.erase(found);
  }

  void Send(Message message) override {
    const Address to = message.to();
    std::shared_ptr<LoopbackMailbox> mailbox;
    if (message.connection != 0) {
      mailbox = hub_.AtConnection(message.connection);
    } else if (const auto found = routes_.find(to); found != routes_.end()) {
      mailbox = hub_.AtEndpoint(found->second);
    }
    message.connection = connection_;
    const bool sent = mailbox != nullptr && mailbox->Put(to, std::move(message));
    ++(sent ? counters_.sent : counters_.dropped);
  }

  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override {
    for (int i = 0; i < limit; ++i) {
      Message message;
      if (!mailbox_->Take(message)) return false;
      ++counters_.received;
      sink(std::move(message));
    }
    return !mailbox_->empty();
  }

  void Wait(absl::Duration timeout) override { mailbox_->Wait(timeout); }
  void WakeUp() override { mailbox_->WakeUp(); }
  const TransportCounters& counters() const override { return counters_; }

 private:
  LoopbackHub& hub_;
  const std::string endpoint_;
  const std::shared_ptr<LoopbackMailbox> mailbox_;
  const uint64_t connection_;
  std::map<Address, std::string> routes_;
  TransportCounters counters_;
};

std::unique_ptr<Transport> LoopbackHub::MakeTransport(absl::string_view name) {
  const std::string endpoint = name.empty() ? "" : absl::StrCat("loopback://", name);
  return std::make_unique<LoopbackTransport>(*this, endpoint);
}

}  // namespace covey
