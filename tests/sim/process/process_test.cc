// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/process.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "tests/sim/process/sim_log.h"

namespace covey::sim {
namespace {

// Sends a numbered pull request every second, and counts the replies. Answers every request.
class Chatter : public Actor, public Program {
 public:
  Chatter(NodeId self, const Address& peer) : self_(self), peer_(peer) {}

  void Receive(absl::Time, const Message& message, Outbox& outbox) override {
    if (message.envelope.has_pull_reply()) ++answers_;
    if (message.envelope.has_disk_durable()) ++durable_;
    if (!message.envelope.has_pull_request()) return;
    ++requests_;
    const Buffer& frame = message.frames[0];
    switch (keeping_) {
      case Keeping::kNothing:
        break;
      case Keeping::kCopies:
        kept_.push_back(frame.Kept());
        break;
      case Keeping::kFrames:
        kept_.push_back(frame);
        break;
      case Keeping::kReplies:
        outbox.Send(WithFrame(MakeReply(message), frame));
        return;
    }
    Message reply = MakeReply(message);
    reply.envelope.mutable_pull_reply();
    outbox.Send(std::move(reply));
  }
  void Wake(absl::Time now, Outbox& outbox) override {
    next_ = now + absl::Seconds(1);
    if (peer_.node == NodeId()) {
      Message append;
      append.set_to({self_, kDiskLoop});
      append.envelope.mutable_disk_append();
      return outbox.Send(std::move(append));
    }
    outbox.Route(peer_, "sim://peer/0");
    Message message;
    message.set_to(peer_);
    message.envelope.mutable_pull_request();
    outbox.Send(WithFrame(std::move(message), Buffer::Allocate(8)));
  }
  absl::Time NextWake() const override { return next_; }

  std::vector<Actor*> loops() override { return {this}; }
  NodeId node() const override { return self_; }
  Epoch epoch() const override { return Epoch(3); }

  // What the actor does with the frames of requests: it may send one back, too.
  enum class Keeping { kNothing, kCopies, kFrames, kReplies };
  void SetKeeping(Keeping keeping) { keeping_ = keeping; }

  int answers() const { return answers_; }
  int requests() const { return requests_; }
  int durable() const { return durable_; }

 private:
  static Message WithFrame(Message message, const Buffer& frame) {
    message.frames.push_back(frame);
    return message;
  }

  const NodeId self_;
  const Address peer_;
  Keeping keeping_ = Keeping::kNothing;
  std::vector<Buffer> kept_;
  absl::Time next_ = absl::InfinitePast();
  int answers_ = 0;
  int requests_ = 0;
  int durable_ = 0;
};

class ProcessTest : public testing::Test, public Observer {
 protected:
  ProcessTest() {
    observers_.push_back(this);
    peer_ = MakeProcess("peer", HostId(1), NodeId(2), {});
    caller_ = MakeProcess("caller", HostId(2), NodeId(3), {NodeId(2), 0});
    peer_->Start();
    caller_->Start();
  }

  std::unique_ptr<Process> MakeProcess(std::string name, HostId host, NodeId node,
                                       const Address& peer, size_t inbox_max = 4096) {
    return std::make_unique<Process>(simulator_, network_, observers_,
                                     Process::Options{.name = name,
                                                      .host = host,
                                                      .listening = {name == "peer"},
                                                      .reuse_endpoints = true,
                                                      .inbox_max = inbox_max,
                                                      .scheduler_endpoint = "sim://scheduler/0",
                                                      .log = name == "peer" ? &log_ : nullptr},
                                     [this, name, node, peer](const Process::Birth& birth) {
                                       incarnations_.push_back(birth.incarnation);
                                       EXPECT_TRUE(name != "peer" || log_.Open().ok());
                                       auto chatter = std::make_unique<Chatter>(node, peer);
                                       (name == "peer" ? peer_actor_ : caller_actor_) =
                                           chatter.get();
                                       return chatter;
                                     });
  }

  void Run(absl::Duration duration) {
    const absl::Time until = simulator_.now() + duration;
    while (simulator_.RunOne(until)) {
    }
  }

  void OnSend(absl::Time, const Message& message) override {
    last_sent_ = message;
    last_sent_.frames.clear();
  }
  void OnFramesKept(absl::Time, absl::string_view receiver, const Message& message,
                    size_t frames) override {
    EXPECT_EQ(receiver, "peer");
    EXPECT_TRUE(message.envelope.has_pull_request());
    frames_kept_ += frames;
  }

  Simulator simulator_{1};
  SimNetwork network_{simulator_, {}};
  SimLog log_{simulator_, {}, [] {}};
  std::vector<Observer*> observers_;
  std::vector<Incarnation> incarnations_;
  Message last_sent_;
  size_t frames_kept_ = 0;
  Chatter* peer_actor_ = nullptr;
  Chatter* caller_actor_ = nullptr;
  std::unique_ptr<Process> peer_;
  std::unique_ptr<Process> caller_;
};

TEST_F(ProcessTest, CarriesMessagesBothWaysUnderTheSendersIdentity) {
  Run(absl::Milliseconds(3500));
  EXPECT_EQ(peer_actor_->requests(), 4);
  EXPECT_EQ(caller_actor_->answers(), 4);
  EXPECT_EQ(last_sent_.from().node, NodeId(2));
  EXPECT_EQ(last_sent_.incarnation(), incarnations_[0]);
  EXPECT_EQ(last_sent_.envelope.header().epoch(), 3u);
}

TEST_F(ProcessTest, AFrameThatIsKeptOrSentOnIsNoticed) {
  using Keeping = Chatter::Keeping;
  for (const Keeping keeping :
       {Keeping::kNothing, Keeping::kCopies, Keeping::kFrames, Keeping::kReplies}) {
    const int before = peer_actor_->requests();
    peer_actor_->SetKeeping(keeping);
    frames_kept_ = 0;
    Run(absl::Seconds(1));
    EXPECT_EQ(peer_actor_->requests(), before + 1);
    EXPECT_EQ(frames_kept_, keeping == Keeping::kNothing || keeping == Keeping::kCopies ? 0u : 1u);
  }
}

TEST_F(ProcessTest, ARestartIsAnotherIncarnationWithoutMemory) {
  Run(absl::Milliseconds(1500));
  peer_->Crash();
  EXPECT_FALSE(peer_->running());
  Run(absl::Seconds(2));
  peer_->Start();
  EXPECT_EQ(peer_actor_->requests(), 0);
  Run(absl::Seconds(2));
  EXPECT_EQ(peer_actor_->requests(), 2);
  ASSERT_EQ(incarnations_.size(), 3u);
  EXPECT_NE(incarnations_[0], incarnations_[2]);
}

TEST_F(ProcessTest, APausedProcessAnswersLater) {
  Run(absl::Milliseconds(500));
  peer_->Pause();
  Run(absl::Seconds(3));
  EXPECT_EQ(caller_actor_->answers(), 1);
  peer_->Resume();
  Run(absl::Milliseconds(100));
  EXPECT_EQ(caller_actor_->answers(), 4);
  EXPECT_EQ(incarnations_.size(), 2u);
}

TEST_F(ProcessTest, AFloodLosesWhatComesFromOthersButNotItsOwnDisksAnswer) {
  peer_->Crash();
  // The simulator still has events of the first one.
  const std::unique_ptr<Process> crashed = std::move(peer_);
  peer_ = MakeProcess("peer", HostId(1), NodeId(2), {}, /*inbox_max=*/0);
  peer_->Start();
  Run(absl::Milliseconds(2500));
  EXPECT_EQ(peer_actor_->requests(), 0);
  EXPECT_EQ(peer_actor_->durable(), 3);
}

TEST_F(ProcessTest, APartitionLosesMessages) {
  network_.Block(HostId(2), HostId(1));
  Run(absl::Milliseconds(2500));
  EXPECT_EQ(peer_actor_->requests(), 0);
  network_.Unblock(HostId(2), HostId(1));
  Run(absl::Seconds(1));
  EXPECT_EQ(peer_actor_->requests(), 1);
}

TEST_F(ProcessTest, AClogHoldsMessagesBack) {
  network_.Clog(HostId(2), HostId(1));
  Run(absl::Milliseconds(2500));
  EXPECT_EQ(peer_actor_->requests(), 0);
  network_.Unclog(HostId(2), HostId(1));
  Run(absl::Milliseconds(100));
  EXPECT_EQ(peer_actor_->requests(), 3);
}

TEST_F(ProcessTest, AReplyDoesNotCrossAReconnect) {
  network_.Clog(HostId(1), HostId(2));
  Run(absl::Milliseconds(500));
  EXPECT_EQ(peer_actor_->requests(), 1);
  network_.Disconnect(HostId(1), HostId(2));
  network_.Unclog(HostId(1), HostId(2));
  Run(absl::Milliseconds(400));
  EXPECT_EQ(caller_actor_->answers(), 0);
  Run(absl::Seconds(1));
  EXPECT_EQ(caller_actor_->answers(), 1);
}

}  // namespace
}  // namespace covey::sim
