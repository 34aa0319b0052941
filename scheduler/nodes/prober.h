// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/net/transport.h"

namespace covey::scheduler {

// Checks whether a process listens at an endpoint: ProbeRequest in, one ProbeReply out. It is the
// transport of the scheduler's loop, which has no other peers, and the port of {self, kProbeLoop}:
// connections are started without blocking and polled while the loop sleeps.
//
//   CONNECTED: the connection was accepted, at least by the kernel, and stayed open until `limit`.
//     A process that is being killed may still listen for a moment; when the connection breaks
//     before `limit`, the prober connects again.
//   REFUSED: no process listens: ECONNREFUSED, and once more `again_after` later. In between a
//     process that lives is heard, or whoever refused in its place, like a proxy, knows it again.
//   SILENT: no reply within `limit`, no such route, too many probes, or an invalid endpoint; for
//     ipc also a path that does not exist, because somebody may have removed it.
//
// Endpoints are tcp://ADDRESS:PORT with a numeric address (names are SILENT: looking them up would
// block the loop), ipc://PATH and ipc://@NAME.
//
// Limits: `under_way_max` connections, `waiting_max` requests that wait for one. Belongs to the
// loop's thread, except WakeUp.
class Prober : public Transport, public MessagePort {
 public:
  struct Options {
    absl::Duration limit = absl::Milliseconds(250);
    // The default interval of heartbeats.
    absl::Duration again_after = absl::Milliseconds(500);
    size_t under_way_max = 128;
    size_t waiting_max = 4096;
  };

  explicit Prober(const Options& options);
  ~Prober() override;

  std::string endpoint() const override { return ""; }
  void SetRoute(const Address&, const std::string&) override {}
  void DropRoute(const Address&) override {}
  void Send(Message message) override;
  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override;
  void Wait(absl::Duration timeout) override;
  void WakeUp() override;
  const TransportCounters& counters() const override { return counters_; }

 private:
  struct Probe {
    Message request;
    absl::Time until;
    int socket = -1;
    bool connected = false;
    bool was_refused = false;
  };

  // Starts waiting probes, up to the limit, and the second try of refused ones.
  void Begin(absl::Time now);
  // Connects, for the first time or again.
  void Connect(Probe probe);
  // Handles `events` at the socket of a probe. True: the probe goes on.
  bool Continue(absl::Time now, int events, Probe& probe);
  void OnFailure(int error, Probe probe);
  void Conclude(const Message& request, proto::ProbeReply::Result result);

  const Options options_;
  int wake_up_;  // an eventfd
  TransportCounters counters_;
  std::deque<Message> waiting_;
  std::vector<Probe> under_way_;
  std::deque<Probe> refused_;  // once; tried again at `until`, the first one first
  std::deque<Message> replies_;
};

}  // namespace covey::scheduler
