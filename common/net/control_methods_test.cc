// SPDX-License-Identifier: Apache-2.0

// The list of control methods against what the proto files say.
#include "common/net/control_methods.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

#include "proto/scheduler_service.grpc.pb.h"

namespace covey {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

// Numbers of the envelope's fields that belong to the control plane (envelope.proto).
constexpr int kFirstControlField = 10;
constexpr int kLastControlField = 39;

const ServiceDescriptor& Service() {
  return *DescriptorPool::generated_pool()->FindServiceByName(
      proto::Scheduler::service_full_name());
}

const Descriptor* TypeOf(proto::Envelope::BodyCase body) {
  return proto::Envelope::descriptor()->FindFieldByNumber(body)->message_type();
}

proto::Envelope With(proto::Envelope::BodyCase body) {
  proto::Envelope envelope;
  envelope.GetReflection()->MutableMessage(&envelope,
                                           envelope.GetDescriptor()->FindFieldByNumber(body));
  return envelope;
}

TEST(ControlMethodsTest, ListEveryRpcOnceWithItsRequestAndReply) {
  EXPECT_EQ(static_cast<int>(std::size(kControlMethods)), Service().method_count());
  for (const ControlMethod& method : kControlMethods) {
    const MethodDescriptor* rpc = Service().FindMethodByName(std::string(method.rpc));
    ASSERT_NE(rpc, nullptr) << method.rpc;
    EXPECT_EQ(TypeOf(method.request), rpc->input_type()) << method.rpc;
    EXPECT_EQ(TypeOf(method.reply), rpc->output_type()) << method.rpc;
  }
  for (int i = 0; i < Service().method_count(); ++i) {
    const MethodDescriptor& rpc = *Service().method(i);
    int listed = 0;
    for (const ControlMethod& method : kControlMethods) listed += method.rpc == rpc.name() ? 1 : 0;
    EXPECT_EQ(listed, 1) << rpc.name() << " needs its line in COVEY_CONTROL_METHODS";
  }
}

TEST(ControlMethodsTest, OnlyUnaryMethodsAreCalledAsSuch) {
  std::set<std::string> unary;
#define COVEY_INSERT(Rpc, Stem, stem, access) unary.insert(#Rpc);
  COVEY_UNARY_CONTROL_METHODS(COVEY_INSERT)
#undef COVEY_INSERT
  for (int i = 0; i < Service().method_count(); ++i) {
    const MethodDescriptor& rpc = *Service().method(i);
    EXPECT_FALSE(rpc.client_streaming()) << rpc.name();
    EXPECT_EQ(unary.contains(rpc.name()), !rpc.server_streaming()) << rpc.name();
  }
}

TEST(ControlMethodsTest, EveryControlFieldOfTheEnvelopeBelongsToOne) {
  const Descriptor& envelope = *proto::Envelope::descriptor();
  for (int i = 0; i < envelope.field_count(); ++i) {
    const FieldDescriptor& field = *envelope.field(i);
    if (field.number() < kFirstControlField || field.number() > kLastControlField) continue;
    int found = 0;
    for (const ControlMethod& method : kControlMethods) {
      found += method.request == field.number() ? 1 : 0;
      found += method.reply == field.number() ? 1 : 0;
    }
    EXPECT_EQ(found, 1) << field.name();
  }
}

TEST(ControlMethodsTest, EveryRequestHasItsReply) {
  for (const ControlMethod& method : kControlMethods) {
    Message request;
    request.envelope = With(method.request);
    request.envelope.mutable_header()->set_request_id(7);
    EXPECT_EQ(FindControlMethod(request.envelope), &method);
    const Message reply = MakeControlReply(request);
    EXPECT_EQ(reply.envelope.body_case(), method.reply) << method.rpc;
    EXPECT_EQ(reply.envelope.header().request_id(), 7u);
    EXPECT_EQ(FindControlMethod(reply.envelope), nullptr) << method.rpc;
  }
  Message push;
  push.envelope.mutable_push_request();
  EXPECT_EQ(FindControlMethod(push.envelope), nullptr);
  EXPECT_EQ(MakeControlReply(push).envelope.body_case(), proto::Envelope::BODY_NOT_SET);
}

}  // namespace
}  // namespace covey
