#include "server/producers.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::server {

namespace {

// In place of a version; no shard gets there.
constexpr Version kDiscarded{std::numeric_limits<uint64_t>::max() - 1};

// Whether sequences go on in a new incarnation: a group counts its steps on over changes of members,
// a client begins at 1.
bool CountsOn(const Producer& producer) { return producer.kind == Producer::Kind::kGroup; }

}  // namespace

absl::StatusOr<Producers::Finding> Producers::Find(const PushKey& key) const {
  const auto found = entries_.find(key.producer);
  if (found == entries_.end()) return Finding{};
  const Entry& entry = found->second;
  if (key.incarnation > entry.incarnation && !CountsOn(key.producer)) return Finding{};
  if (key.incarnation < entry.incarnation) {
    return absl::AbortedError(absl::StrCat("incarnation ", key.incarnation,
                                           " of the producer has been replaced by ",
                                           entry.incarnation, "; stop, or join the cluster anew"));
  }
  const DedupWindow::Finding finding = entry.window.Find(key.sequence);
  if (finding.verdict == DedupWindow::Verdict::kTooOld) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequence ", key.sequence, " is too old: the last ", kDedupWindow, " up to ",
        entry.window.highest(), " are remembered; use the next sequence for a new push"));
  }
  const bool discarded = finding.version == kDiscarded;
  return Finding{.known = finding.verdict == DedupWindow::Verdict::kDuplicate,
                 .discarded = discarded,
                 .version = discarded ? Version() : finding.version};
}

absl::Status Producers::Record(const PushKey& key,
                               absl::FunctionRef<bool(const Producer&)> is_gone) {
  auto found = entries_.find(key.producer);
  if (found == entries_.end()) {
    COVEY_RETURN_IF_ERROR(MakeRoom(is_gone));
    found = entries_.emplace(key.producer, Entry{.incarnation = key.incarnation}).first;
  }
  Entry& entry = found->second;
  if (key.incarnation > entry.incarnation) {
    if (!CountsOn(key.producer)) entry.window = DedupWindow();
    entry.incarnation = key.incarnation;
  }
  entry.last_use = ++uses_;
  entry.window.Record(key.sequence, Version());
  return absl::OkStatus();
}

absl::Status Producers::MakeRoom(absl::FunctionRef<bool(const Producer&)> is_gone) {
  if (entries_.size() < kProducersPerShardMax) return absl::OkStatus();
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if ((oldest == entries_.end() || entry->second.last_use < oldest->second.last_use) &&
        is_gone(entry->first)) {
      oldest = entry;
    }
  }
  if (oldest == entries_.end()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(entries_.size(), " producers push to this shard, and all of them live; use ",
                     "fewer clients, or let them form groups"));
  }
  entries_.erase(oldest);
  return absl::OkStatus();
}

void Producers::SetVersion(const PushKey& key, Version version) {
  const auto found = entries_.find(key.producer);
  if (found == entries_.end()) return;
  if (found->second.incarnation != key.incarnation && !CountsOn(key.producer)) return;
  found->second.window.SetVersion(key.sequence, version);
}

void Producers::SetDiscarded(const PushKey& key) { SetVersion(key, kDiscarded); }

}  // namespace covey::server
