// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/cluster/limits.h"
#include "common/runtime/process_priority.h"

namespace covey::server {

// Configuration of a server, set by its operator. A value.
struct Config {
  // "host:port" of the scheduler's control port. Required.
  std::string scheduler;
  // Must equal the scheduler's. 1..256 bytes.
  std::string job = "default";
  // The folder of this process's key and certificate, and of the roots that it trusts
  // (common/security/node_credentials.h). Empty = none: then the scheduler's calls and the data
  // plane are open to everybody who reaches them.
  std::string tls;
  // Listens at addresses beyond this host although `tls` is empty.
  bool insecure = false;
  // Wanted rank among the servers; -1 = any free rank. A fixed rank lets a restarted server take
  // its predecessor's place.
  int32_t rank = -1;
  // Topology, most general first: zone/rack/host/device; missing parts empty. All empty = found out
  // by the server itself (common/runtime/topology_labels.h).
  std::string labels;
  // How tensors travel (common/net/data_transport.h).
  std::string transport = "auto";
  // Address at which workers reach the data loops; not with ipc. With the default, only this host
  // reaches them.
  std::string data_host = "127.0.0.1";
  // Port of the first data loop, the next ones follow; not with ipc. 0 = any free ports.
  uint32_t data_port = 0;
  // "host:port[,host:port...]", one per data loop, in order: where others reach the data loops,
  // when that differs from where these listen, as behind a forwarder. With `loops` set, and not
  // with ipc.
  // Empty = no difference.
  std::string advertise_data;
  // Where the tables are: host (the memory of this process) or cuda (that of a GPU). The servers of
  // a job may differ in it.
  std::string table_memory = "host";
  // A folder of a local disk for the rows of sparse tables, which may then be larger than the
  // memory (server/table/row_file.h). Empty = they are in memory. The servers of a job may differ
  // in it.
  std::string row_folder;
  // The folder of the store of snapshots, the same one for the scheduler and all servers of the
  // job. Empty = none: the job can neither make nor continue snapshots.
  std::string store;
  // The folder in which the server records what its shards apply. Empty = no recording.
  std::string record;
  // Whether gradients are recorded, too, or only their order.
  bool record_gradients = true;
  // Data loops, one thread each; a shard uses one of them. 0 = one per core, at most 64.
  uint32_t loops = 0;
  // How long a data loop spins before it sleeps: shorter round trips, at the price of a busy core.
  // Keep 0 when processes share cores; 0 … 1 ms.
  absl::Duration spin = absl::ZeroDuration();
  // Memory that each data loop keeps for updates while old values, or old state of optimizers, are
  // still being sent. A larger value means fewer allocations; 1 MiB … 1 GiB.
  uint64_t spare_bytes_max = 16 << 20;
  // Bytes of requests that wait in all data loops. One eighth is for requests in flight; clients
  // are told this limit. (It is small, because a client retries a request that waits long.) The
  // rest is for gradients that wait for their update, and for parked replies; beyond it requests
  // are refused and retried later. A larger value absorbs bursts; 32 MiB … 64 GiB.
  uint64_t queued_bytes_max = kQueuedBytesDefault;
  // Bytes per second of the tensors that it receives from clients and workers and sends to them,
  // over all data loops; a request beyond it is refused and retried later. Copies between servers
  // are not in it. 0 = no limit; otherwise 64 KiB … 1 TiB.
  uint64_t rate_max = 0;
  // Bytes that the values, the state of optimizers and the rows of its tables may take; what does
  // not fit is refused. 0 = three quarters of the memory that the process may have, or no limit
  // where tables or rows are elsewhere (table_memory, row_folder); otherwise 1 MiB … 64 TiB.
  uint64_t table_bytes_max = 0;
  // "host:port" at which metrics and probes answer over plain HTTP. Empty = nowhere.
  std::string metrics;
  // kLow: other processes of the host come first.
  ProcessPriority priority = ProcessPriority::kNormal;
  // Of the lines of its log.
  LogLevel log_level = LogLevel::kInfo;
  // After a signal the server goes on serving until its shards are elsewhere, at most for this
  // duration; 0 … 1 h.
  absl::Duration drain_deadline = absl::Seconds(30);
  // Give up when the scheduler has not registered this server by then; 100 ms … 1 h.
  absl::Duration join_deadline = absl::Seconds(30);

  // INVALID_ARGUMENT: names the setting, its value and the allowed range. FAILED_PRECONDITION:
  // other hosts reach data_host, and there is neither `tls` nor `insecure`.
  absl::Status Validate() const;
};

}  // namespace covey::server
