// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/metrics/metric_page.h"
#include "common/net/transport.h"

namespace covey {

// What every process has: its version and role, and what the system counts for it under the
// names that Prometheus's own libraries give it. Metrics that /proc does not tell are left out.
void AddProcessMetrics(absl::string_view role, MetricPage& page);

// When the certificate in `folder` (NodeCredentials) expires; 0 = the folder is of no use at
// `wall_now`. Blocks on the disk.
void AddCertificateMetrics(const std::string& folder, absl::Time wall_now, MetricPage& page);

// EventLoop::busy; may be called for several loops.
void AddBusyTime(absl::Duration busy, MetricPage& page);

// The messages of loops on the data plane; may be called for several loops.
void AddMessageMetrics(const TransportCounters& counters, MetricPage& page);

}  // namespace covey
