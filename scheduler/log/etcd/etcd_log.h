// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/runtime/actor.h"
#include "proto/log.pb.h"
#include "scheduler/log/etcd/etcd_store.h"

namespace covey::scheduler {

// The scheduler's disk when its log is in etcd: stands by until it leads, then makes DiskAppend
// messages durable and replies with DiskDurable. It has a loop of its own, because it waits for
// etcd inside its calls. So it is an actor only by its interface; it is neither deterministic nor
// quick.
//
//   kStandingBy ── leader key made, record recovered ──▶ kLeading
//        ▲  │                                                │ overtaken, or etcd out of
//        └──┘ another leads, or no etcd: again in 300 ms     ▼ reach for the lease term
//                                                          kLost
//
// In kLost every append is refused; the process must exit, and stands by again after a restart.
class EtcdLog : public Actor {
 public:
  // Called on this actor's loop.
  struct Events {
    // This scheduler leads from here on, with the newest record as its state.
    std::function<void(std::optional<proto::LogRecord>)> leads;
    // Until when it leads, unless this is called again: before `leads`, and at each renewal of its
    // lease in etcd.
    std::function<void(absl::Time)> leads_until;
    // Why this scheduler does not lead, for users.
    std::function<void(std::string)> stands_by;
    // This scheduler no longer leads. ABORTED: another one does; UNAVAILABLE: etcd; others: the log
    // is unusable.
    std::function<void(absl::Status)> lost;
  };

  EtcdLog(const EtcdStore::Options& options, Events events)
      : options_(options), store_(options), events_(std::move(events)) {}

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override { return next_; }

  // After the loop has stopped: lets another scheduler lead at once.
  void Resign() { store_.Resign(); }

 private:
  enum class State { kStandingBy, kLeading, kLost };

  void Campaign();
  void ReportLease();
  void Append(Outbox& outbox);
  void Answer(const absl::Status& status, Outbox& outbox);
  // The status with which `status` ends the lead; OK = it does not yet.
  absl::Status Verdict(const absl::Status& status) const;
  void Lose(const absl::Status& status, Outbox& outbox);

  const EtcdStore::Options options_;
  EtcdStore store_;
  const Events events_;
  State state_ = State::kStandingBy;
  absl::Status lost_;
  absl::Time next_ = absl::InfinitePast();
  absl::Time reported_lease_ = absl::InfinitePast();
  // The record that is not in etcd yet.
  std::optional<Message> pending_;
};

}  // namespace covey::scheduler
