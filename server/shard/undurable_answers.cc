#include "server/shard/undurable_answers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace covey::server {

void UndurableAnswers::Add(UndurableAnswer answer) {
  COVEY_CHECK(answers_.empty() || answers_.back().index <= answer.index);
  next_deadline_ = std::min(next_deadline_, answer.deadline);
  answers_.push_back(std::move(answer));
}

void UndurableAnswers::TakeDurable(uint64_t durable,
                                   absl::FunctionRef<void(UndurableAnswer&)> take) {
  if (answers_.empty() || answers_.front().index > durable) return;
  while (!answers_.empty() && answers_.front().index <= durable) {
    UndurableAnswer answer = std::move(answers_.front());
    answers_.pop_front();
    take(answer);
  }
  FindDeadline();
}

void UndurableAnswers::TakeLate(absl::Time now, absl::FunctionRef<void(UndurableAnswer&)> take) {
  if (now < next_deadline_) return;
  std::vector<UndurableAnswer> late;
  std::deque<UndurableAnswer> kept;
  for (UndurableAnswer& answer : answers_) {
    if (answer.deadline <= now) {
      late.push_back(std::move(answer));
    } else {
      kept.push_back(std::move(answer));
    }
  }
  answers_ = std::move(kept);
  FindDeadline();
  for (UndurableAnswer& answer : late) take(answer);
}

void UndurableAnswers::FindDeadline() {
  next_deadline_ = absl::InfiniteFuture();
  for (const UndurableAnswer& answer : answers_) {
    next_deadline_ = std::min(next_deadline_, answer.deadline);
  }
}

size_t UndurableAnswers::bytes() const {
  size_t bytes = 0;
  const uint8_t* last = nullptr;
  for (const UndurableAnswer& answer : answers_) {
    if (answer.reply.frames.empty() || answer.reply.frames[0].data() == last) continue;
    last = answer.reply.frames[0].data();
    bytes += answer.reply.frames[0].size();
  }
  return bytes;
}

}  // namespace covey::server
