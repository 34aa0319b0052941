// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/server_window.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"

namespace covey::client {

size_t ServerWindow::limit() const {
  if (!heard_) return std::min(budget_, kFirstBytes);
  return refused_ ? std::min(ceiling(), static_cast<size_t>(share_)) : ceiling();
}

bool ServerWindow::MaySend(size_t bytes) const {
  if (Planted(PlantedBug::kCountMessagesNotBytes)) {
    return requests_in_flight_ < static_cast<size_t>(kTransportQueueMessagesMax);
  }
  return requests_in_flight_ == 0 || bytes_in_flight_ + bytes <= limit();
}

uint64_t ServerWindow::Send(size_t bytes) {
  bytes_in_flight_ += bytes;
  ++requests_in_flight_;
  return ++sent_;
}

void ServerWindow::Gone(size_t bytes) {
  COVEY_CHECK(bytes_in_flight_ >= bytes && requests_in_flight_ > 0);
  bytes_in_flight_ -= bytes;
  --requests_in_flight_;
}

void ServerWindow::Answered(size_t bytes, size_t credit) {
  if (refused_) {
    share_ += static_cast<double>(kStepBytes) * static_cast<double>(bytes) /
              std::max(share_, static_cast<double>(kSmallestBytes));
    share_ = std::min(share_, static_cast<double>(budget_));
  }
  heard_ = true;
  if (credit != 0) credit_ = credit;
}

void ServerWindow::Refused(uint64_t number) {
  if (number <= sent_when_halved_) return;
  share_ = std::max(static_cast<double>(kSmallestBytes), static_cast<double>(limit()) / 2);
  refused_ = true;
  heard_ = true;
  sent_when_halved_ = sent_;
}

}  // namespace covey::client
