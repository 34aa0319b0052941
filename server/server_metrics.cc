// SPDX-License-Identifier: Apache-2.0
#include "server/server_metrics.h"

#include <string>

#include "absl/strings/string_view.h"

namespace covey::server {
namespace {

constexpr size_t kTablesNamed = 16;

}  // namespace

void AddLoopSilence(const std::optional<DataLoopWatch::SilentLoop>& longest, MetricPage& page) {
  page.Gauge("covey_loop_silence_seconds",
             "Since when the data loop that was heard last of all has reported nothing.",
             longest ? absl::ToDoubleSeconds(longest->silence) : 0);
}

void AddReplicationLag(uint64_t records, MetricPage& page) {
  page.Gauge("covey_replication_lag_records",
             "Records of a shard that the next servers of its chain have not confirmed, the most.",
             static_cast<double>(records));
}

void AddLoopMetrics(const ShardCounters& counters, const DurationHistogram& applies,
                    MetricPage& page) {
  const auto count = [&page](absl::string_view name, absl::string_view help, uint64_t value) {
    page.Counter(name, help, static_cast<double>(value));
  };
  count("covey_pushes_total", "Pushes received for the first time.", counters.pushes);
  count("covey_pulls_total", "Pulls received.", counters.pulls);
  count("covey_pushes_repeated_total", "Pushes that had been received before.",
        counters.duplicates);
  count("covey_pushes_nonfinite_total", "Pushes refused for NaN or infinity.", counters.non_finite);
  count("covey_pushes_stale_total",
        "Pushes not applied, because the contract finds them too stale.", counters.discarded);
  count("covey_requests_refused_total",
        "Pushes and pulls refused because too much waits, or too much is used.", counters.refused);
  count("covey_requests_malformed_total", "Requests that no correct peer sends.",
        counters.malformed);
  count("covey_messages_from_impostors_total",
        "Messages in the name of a node, sent by another process; they are dropped.",
        counters.impostors);
  count("covey_reply_bytes_total", "Bytes of tensors in replies to pushes and pulls.",
        counters.reply_bytes);
  count("covey_records_replicated_total", "Updates sent to the next servers of chains.",
        counters.replicated);
  count("covey_replica_fill_bytes_total", "Bytes of content sent to replicas that were filled.",
        counters.content_bytes);
  count("covey_replicas_unfit_total", "Replicas of this server that turned out to be wrong.",
        counters.unfit_replicas);
  page.Histogram("covey_apply_seconds",
                 "Time that a data loop takes for a push, or for a record of a chain.", applies);
  page.Histogram("covey_replication_seconds",
                 "From sending a record to the next server until the chain has confirmed it.",
                 counters.replication);
}

void AddLoadMetrics(const proto::ServerLoad& load, const ClusterView& view,
                    uint64_t queued_bytes_max, MetricPage& page) {
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  constexpr char kTableBytes[] = "covey_table_bytes";
  constexpr char kTableBytesHelp[] =
      "Values and optimizer state of this server's shards, as head and as replica.";
  page.Gauge(kTableBytes, kTableBytesHelp, number(load.table_bytes() - load.replica_bytes()),
             {{"kind", "head"}});
  page.Gauge(kTableBytes, kTableBytesHelp, number(load.replica_bytes()), {{"kind", "replica"}});
  if (load.table_bytes_max() > 0) {
    page.Gauge("covey_table_max_bytes", "What its tables may take; what does not fit is refused.",
               number(load.table_bytes_max()));
  }
  page.Gauge("covey_queued_bytes", "Waiting requests, and lists of keys for later ones.",
             number(load.queued_bytes()));
  page.Gauge("covey_queued_max_bytes", "What may wait; beyond it requests are refused.",
             number(queued_bytes_max));
  page.Gauge("covey_gated_producers", "Producers with pushes beyond the gate of a table.",
             load.gated_size());

  LabelLimit names(kTablesNamed);
  const auto labels_of = [&](uint32_t id) {
    const proto::Table* table = view.FindTable(TableId(id));
    return MetricPage::Labels{
        {"table", table == nullptr ? LabelLimit::kOther : names.LabelOf(table->spec().name())}};
  };
  for (const proto::TableAsynchrony& table : load.tables()) {
    const MetricPage::Labels labels = labels_of(table.table());
    page.Counter("covey_updates_total", "Updates of a table since it was created.",
                 number(table.updates()), labels);
    if (labels[0].second == LabelLimit::kOther) continue;  // a mean cannot be added up
    page.Gauge("covey_staleness_updates",
               "Updates by others between the values of a gradient and its application, mean.",
               table.staleness(), labels);
  }
  for (const proto::TableRows& rows : load.rows()) {
    const MetricPage::Labels labels = labels_of(rows.table());
    page.Gauge("covey_rows", "Rows of a sparse table.", number(rows.rows()), labels);
    page.Gauge("covey_rows_pending", "Keys of a sparse table that wait for admission.",
               number(rows.pending()), labels);
    page.Gauge("covey_row_bytes", "Memory of rows, their optimizer state and their index.",
               number(rows.bytes()), labels);
  }
}

uint64_t ShardsJoining(const ClusterView& view, NodeId server) {
  uint64_t joining = 0;
  for (const proto::Table& table : view.proto().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      for (const proto::Replica& replica : shard.chain()) {
        if (replica.joining() && NodeId(replica.node()) == server) ++joining;
      }
    }
  }
  return joining;
}

}  // namespace covey::server
