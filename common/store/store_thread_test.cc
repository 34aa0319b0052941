// SPDX-License-Identifier: Apache-2.0
#include "common/store/store_thread.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/set_once.h"
#include "common/net/testing/reply_inbox.h"
#include "common/store/testing/memory_folder.h"

namespace covey {
namespace {

constexpr Address kLoop = {NodeId(7), 3};
constexpr Address kStore = {NodeId(7), 9};

Buffer BufferOf(const std::string& text) {
  return Buffer::CopyOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

class StoreThreadTest : public testing::Test {
 protected:
  void Start(StoreThread::Options options = {}) {
    store_ = std::make_unique<StoreThread>(options, std::make_unique<MemoryFolder>(),
                                           [this](Message reply) {
                                             // A refusal comes inside Send.
                                             if (gate_ && StatusOf(reply).ok()) gate_->Wait();
                                             inbox_.Put(std::move(reply));
                                           });
  }
  Message Request(const std::string& path, const std::vector<std::string>& frames = {}) {
    Message message;
    message.envelope.mutable_header()->set_node(kLoop.node.value());
    message.envelope.set_from_loop(kLoop.loop);
    message.envelope.mutable_header()->set_request_id(++requests_);
    message.set_to(kStore);
    message.envelope.mutable_store_request()->set_id(100 + requests_);
    message.envelope.mutable_store_request()->set_path(path);
    for (const std::string& frame : frames) message.frames.push_back(BufferOf(frame));
    return message;
  }
  Message Append(const std::string& path, uint64_t offset, const std::vector<std::string>& frames) {
    Message message = Request(path, frames);
    message.envelope.mutable_store_request()->mutable_append()->set_offset(offset);
    return message;
  }
  Message Next() {
    std::optional<Message> reply = inbox_.Take();
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(Message());
  }
  // Sends, and returns the reply.
  Message Ask(Message message) {
    const uint64_t id = message.envelope.store_request().id();
    store_->Send(std::move(message));
    Message reply = Next();
    EXPECT_EQ(id, reply.envelope.store_reply().id());
    return reply;
  }

  ReplyInbox inbox_;
  std::optional<SetOnce<bool>> gate_;
  uint64_t requests_ = 0;
  std::unique_ptr<StoreThread> store_;
};

TEST_F(StoreThreadTest, DrainsWhatWaits) {
  gate_.emplace();
  Start();
  EXPECT_TRUE(store_->Drain(absl::ZeroDuration()));
  store_->Send(Append("s/part", 0, {"one"}));
  store_->Send(Append("s/part", 3, {"two"}));
  EXPECT_FALSE(store_->Drain(absl::Milliseconds(20)));
  gate_->Set(true);
  EXPECT_TRUE(store_->Drain(absl::Seconds(20)));
  store_->Stop();
  EXPECT_TRUE(StatusOf(Next()).ok());
  EXPECT_TRUE(StatusOf(Next()).ok());
}

TEST_F(StoreThreadTest, CarriesOutEveryOperation) {
  Start();
  const Message appended = Ask(Append("s/part", 0, {"one", "", "two"}));
  EXPECT_TRUE(StatusOf(appended).ok()) << StatusOf(appended);
  EXPECT_EQ(kStore, appended.from());
  EXPECT_EQ(kLoop, appended.to());
  EXPECT_EQ(requests_, appended.envelope.header().request_id());

  Message message = Request("s/part");
  message.envelope.mutable_store_request()->mutable_sync();
  EXPECT_TRUE(StatusOf(Ask(message)).ok());
  message = Request("s/MANIFEST", {"all"});
  message.envelope.mutable_store_request()->mutable_publish();
  EXPECT_TRUE(StatusOf(Ask(message)).ok());

  message = Request("s/part");
  message.envelope.mutable_store_request()->mutable_read()->set_offset(2);
  const Message read = Ask(message);
  ASSERT_EQ(1u, read.frames.size());
  EXPECT_EQ("etwo", std::string(reinterpret_cast<const char*>(read.frames[0].data()), 4));

  message = Request("s");
  message.envelope.mutable_store_request()->mutable_list();
  const Message listed = Ask(message);
  ASSERT_EQ(2, listed.envelope.store_reply().entries_size());
  EXPECT_EQ("part", listed.envelope.store_reply().entries(1).name());
  EXPECT_EQ(6u, listed.envelope.store_reply().entries(1).bytes());

  message = Request("s");
  message.envelope.mutable_store_request()->mutable_remove()->set_first("MANIFEST");
  message.envelope.mutable_store_request()->mutable_remove()->add_keep("part");
  EXPECT_TRUE(StatusOf(Ask(message)).ok());
  message.envelope.mutable_store_request()->mutable_remove()->clear_keep();
  EXPECT_TRUE(StatusOf(Ask(message)).ok()) << "part was kept";
  EXPECT_EQ(absl::StatusCode::kNotFound, StatusOf(Ask(message)).code());
}

TEST_F(StoreThreadTest, RefusesWhatIsNoOperation) {
  Start();
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, StatusOf(Ask(Request("s"))).code());
  Message message = Request("s");
  message.envelope.mutable_pull_request();
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, StatusOf(Ask(message)).code());
  for (const std::vector<std::string>& frames : {std::vector<std::string>{}, {"a", "b"}}) {
    message = Request("s/MANIFEST", frames);
    message.envelope.mutable_store_request()->mutable_publish();
    EXPECT_EQ(absl::StatusCode::kInvalidArgument, StatusOf(Ask(message)).code());
  }
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, StatusOf(Ask(Append("../s", 0, {"a"}))).code());
}

TEST_F(StoreThreadTest, RefusesWhatTheQueueCannotHold) {
  gate_.emplace();
  Start({.queue_bytes_max = 10});
  // Taken although it is larger, because nothing waits; its reply keeps the thread busy.
  store_->Send(Append("a", 0, {"more than ten bytes"}));
  // Until the thread has taken it, its bytes count.
  while (true) {
    store_->Send(Append("b", 0, {"123456"}));
    if (inbox_.empty()) break;
    EXPECT_EQ(absl::StatusCode::kResourceExhausted, StatusOf(Next()).code());
  }
  store_->Send(Append("b", 6, {"7890"}));
  EXPECT_TRUE(inbox_.empty());
  store_->Send(Append("b", 10, {"1"}));
  EXPECT_EQ(absl::StatusCode::kResourceExhausted, StatusOf(Next()).code());
  Message message = Request("b");
  message.envelope.mutable_store_request()->mutable_read()->set_bytes(1);
  store_->Send(message);
  EXPECT_EQ(absl::StatusCode::kResourceExhausted, StatusOf(Next()).code());
  gate_->Set(true);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(StatusOf(Next()).ok());
  EXPECT_TRUE(StatusOf(Ask(Append("b", 10, {"1"}))).ok());
}

TEST_F(StoreThreadTest, BoundsTheNumberOfRequests) {
  gate_.emplace();
  Start({.queue_requests_max = 2});
  int sent = 0;
  for (; inbox_.empty(); ++sent) store_->Send(Append("f" + std::to_string(sent), 0, {}));
  EXPECT_EQ(absl::StatusCode::kResourceExhausted, StatusOf(Next()).code());
  EXPECT_LE(sent, 4);
  gate_->Set(true);
}

TEST_F(StoreThreadTest, StopsWithoutTheRequestsThatWait) {
  gate_.emplace();
  Start();
  for (int i = 0; i < 100; ++i) store_->Send(Append("f" + std::to_string(i), 0, {"1"}));
  gate_->Set(true);
  store_->Stop();
  store_->Stop();
  while (!inbox_.empty()) inbox_.Take();
  store_->Send(Append("late", 0, {"1"}));
  EXPECT_TRUE(inbox_.empty());
}

}  // namespace
}  // namespace covey
