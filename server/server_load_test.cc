// SPDX-License-Identifier: Apache-2.0
#include "server/server_load.h"

#include <gtest/gtest.h>

namespace covey::server {
namespace {

// Fails when a field is added to the proto and forgotten in the sum.
TEST(ServerLoad, EveryNumberIsSummed) {
  proto::ServerLoad load;
  const google::protobuf::Reflection& reflection = *load.GetReflection();
  const google::protobuf::Descriptor& descriptor = *load.GetDescriptor();
  uint64_t number = 100;
  int numbers = 0;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = descriptor.field(i);
    if (field->is_repeated()) continue;
    ASSERT_EQ(field->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_UINT64)
        << field->name() << " needs a rule of its own";
    reflection.SetUInt64(&load, field, ++number);
    ++numbers;
  }
  EXPECT_GT(numbers, 0);

  ServerLoadSum sum;
  sum.Add(load);
  sum.Add(load);
  sum.Add(load);
  const proto::ServerLoad total = sum.Take();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = descriptor.field(i);
    if (field->name() == "table_bytes_max") continue;  // of the process, not of its loops
    if (field->is_repeated()) continue;
    EXPECT_EQ(reflection.GetUInt64(total, field), 3 * reflection.GetUInt64(load, field))
        << field->name();
  }
}

TEST(ServerLoad, ReportsOfOneTableAreMergedInOrderOfTable) {
  proto::ServerLoad first;
  first.add_tables()->set_table(7);
  first.mutable_tables(0)->set_updates(2);
  proto::ServerLoad second;
  second.add_tables()->set_table(7);
  second.mutable_tables(0)->set_updates(3);
  second.add_tables()->set_table(4);
  first.add_rows()->set_table(7);
  first.mutable_rows(0)->set_rows(10);
  *second.add_rows() = first.rows(0);
  second.mutable_rows(0)->set_pending(1);
  second.mutable_rows(0)->set_evicted(2);
  second.mutable_rows(0)->set_refused(3);
  second.mutable_rows(0)->set_bytes(4);

  ServerLoadSum sum;
  sum.Add(first);
  sum.Add(second);
  const proto::ServerLoad total = sum.Take();
  ASSERT_EQ(total.tables_size(), 2);
  EXPECT_EQ(total.tables(0).table(), 4u);
  EXPECT_EQ(total.tables(1).table(), 7u);
  EXPECT_EQ(total.tables(1).updates(), 5u);
  ASSERT_EQ(total.rows_size(), 1);
  EXPECT_EQ(total.rows(0).rows(), 20u);
  EXPECT_EQ(total.rows(0).pending(), 1u);
  EXPECT_EQ(total.rows(0).evicted(), 2u);
  EXPECT_EQ(total.rows(0).refused(), 3u);
  EXPECT_EQ(total.rows(0).bytes(), 4u);
}

}  // namespace
}  // namespace covey::server
