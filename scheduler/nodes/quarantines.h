// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Which producers of pushes are quarantined (ClusterView.quarantined). A producer gets there by
// request, or by the evidence in the reports of servers: it has as many pushes in a row beyond the
// gate of one shard as the table's NormGate.quarantine_after says.
//
//          ┌──────────── release ────────────┐
//          ▼                                 │
//   not quarantined ─ request, evidence ▶ quarantined ─ it has ended ▶ forgotten
//
// Promises:
//  1. Evidence is against one producer. Its usual norm is above `factor` times the usual one of the
//     others. So none is quarantined when all norms have grown together, or when there is only one.
//  2. Pushes from before a release are no evidence. After it, pushes of that producer to a shard
//     are counted from kSettled after the first report that was made with a view of the release.
//  3. The view is in the log, what servers have reported is not. After a restart of the scheduler,
//     all producers are counted as if they had been released then.
//  4. A producer that has ended leaves the view with the next Tick.
//
// Not promised: that a producer is quarantined at exactly that many pushes. Reports are late by a
// second, and 2. and 3. add to it. The gate keeps wild pushes out all the same. Nor that evidence
// has an effect while kQuarantinedMax producers are quarantined.
//
// Actor-confined, deterministic. `state` outlives it.
class Quarantines {
 public:
  // What a server reports may be this much older than the view that it knows: data loops report to
  // it every half second.
  static constexpr absl::Duration kSettled = absl::Seconds(2);
  // Shards on which pushes of released producers are being counted, over all producers. Beyond it,
  // reports about further ones are no evidence.
  static constexpr size_t kCountedMax = 65536;

  explicit Quarantines(ClusterState& state) : state_(state) {}

  // To be called once, before anything else.
  void Start();

  // Quarantines or releases a producer; `asked_by` ends the evidence. Returns the epoch since which
  // it is so. To quarantine one again changes nothing. INVALID_ARGUMENT: the reason is too long.
  // NOT_FOUND: no ACTIVE group and no ALIVE node has this name; or it is to be released, and is not
  // quarantined. RESOURCE_EXHAUSTED: kQuarantinedMax are.
  absl::StatusOr<Epoch> OnRequest(const proto::QuarantineRequest& request,
                                  absl::string_view asked_by);

  // The load of a server from its heartbeat, which it made with the view of epoch `known`.
  void OnHeartbeat(absl::Time now, NodeId server, Epoch known, const proto::ServerLoad& load);

  // Producers that have ended are forgotten. To be called at least every half second.
  void Tick();

 private:
  // As in QuarantinedProducer.
  struct Producer {
    bool is_group = false;
    uint64_t id = 0;

    friend auto operator<=>(const Producer&, const Producer&) = default;
  };
  struct Place {
    Producer producer;
    uint32_t table = 0;
    uint32_t shard = 0;

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  // How pushes are counted after a release.
  struct Count {
    Epoch since;
    absl::Time settled;
    // Pushes in a row that are no evidence, because they were made before.
    uint64_t ignored = 0;
  };

  absl::StatusOr<Epoch> Quarantine(const proto::QuarantineRequest& request,
                                   absl::string_view asked_by);
  absl::StatusOr<Epoch> Release(absl::string_view producer, absl::string_view asked_by);
  void Judge(absl::Time now, NodeId server, Epoch known, const proto::GatedProducer& report);
  // The pushes in a row of a report that are evidence.
  uint64_t CountOf(absl::Time now, Epoch known, const proto::GatedProducer& report);
  Epoch Add(const Producer& producer, std::string reason);

  bool HasEnded(const Producer& producer) const;
  // "group-3", "client-0".
  std::string NameOf(const Producer& producer) const;
  const proto::QuarantinedProducer* Find(const Producer& producer) const;
  // Of the producers that may be named in requests.
  std::string Candidates() const;

  ClusterState& state_;
  // Since when all producers are counted. 0 = from their first push on.
  Epoch started_;
  std::map<Producer, Epoch> released_;
  std::map<Place, Count> counts_;
};

}  // namespace covey::scheduler
