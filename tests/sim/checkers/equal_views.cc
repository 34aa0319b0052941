// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/equal_views.h"

#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void EqualViews::OnSend(absl::Time, const Message& message) {
  const proto::ClusterView* view = PublishedView(message);
  if (view != nullptr && !published_.contains(view->epoch())) {
    published_[view->epoch()] = view->SerializeAsString();
  }
}

void EqualViews::OnReceived(absl::Time, absl::string_view receiver, const Message& message) {
  if (!message.envelope.has_watch_view_reply() || !StatusOf(message).ok()) return;
  const ClusterView* held = held_by_(receiver);
  if (held == nullptr || held->epoch() == Epoch()) return;
  const auto published = published_.find(held->epoch().value());
  if (published == published_.end() || published->second != held->proto().SerializeAsString()) {
    violations_.Add("equal_views", absl::StrCat(receiver, " holds another view of epoch ",
                                                held->epoch().value(), " than was published"));
  }
}

}  // namespace covey::sim
