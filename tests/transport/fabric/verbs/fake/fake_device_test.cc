// Tests that a fake device reports the options that it was made with, and
// behaves accordingly.

#include <arpa/inet.h>

#include <cerrno>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

DeviceOptions Small() {
  DeviceOptions options;
  options.name = "small";
  options.addresses = {"10.0.0.1", "fd00::1"};
  options.gid_types = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};
  options.max_qp_rd_atom = 4;
  options.max_srq_wr = 8;
  options.max_mr_bytes = 4096;
  options.has_windows = false;
  options.max_message_bytes = 1 << 20;
  return options;
}

TEST(FakeDeviceTest, QueriesAnswerTheOptions) {
  FakeVerbs verbs;
  ibv_context* const device = verbs.AddDevice(Small());
  EXPECT_EQ(verbs.context("small"), device);
  EXPECT_STREQ(verbs.GetDeviceName(device->device), "small");
  ibv_device_attr attr;
  ASSERT_EQ(verbs.QueryDevice(device, &attr), 0);
  EXPECT_EQ(attr.max_qp_rd_atom, 4);
  EXPECT_EQ(attr.max_srq_wr, 8);
  EXPECT_EQ(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0u);
  ibv_port_attr port;
  ASSERT_EQ(verbs.QueryPort(device, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.max_msg_sz, 1u << 20);
  EXPECT_EQ(verbs.QueryPort(device, 2, &port), EINVAL);
  verbs.PortDown("small");
  ASSERT_EQ(verbs.QueryPort(device, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
}

TEST(FakeDeviceTest, EachAddressHasAGidOfEachType) {
  FakeVerbs verbs;
  ibv_context* const device = verbs.AddDevice(Small());
  std::vector<ibv_gid_entry> entries(8);
  ASSERT_EQ(verbs.QueryGidTable(device, entries.data(), 8), 4);
  EXPECT_EQ(entries[1].gid_index, 1u);
  EXPECT_EQ(entries[1].gid_type, uint32_t{IBV_GID_TYPE_ROCE_V2});
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, entries[1].gid.raw, text, sizeof text);
  EXPECT_STREQ(text, "::ffff:10.0.0.1");
  inet_ntop(AF_INET6, entries[2].gid.raw, text, sizeof text);
  EXPECT_STREQ(text, "fd00::1");
}

TEST(FakeDeviceTest, LimitsAreKept) {
  FakeVerbs verbs;
  ibv_context* const device = verbs.AddDevice(Small());
  ibv_pd* const pd = verbs.AllocPd(device);
  std::vector<char> memory(8192);
  EXPECT_EQ(verbs.RegMr(pd, memory.data(), 4097, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(verbs.RegMr(pd, memory.data(), 64, IBV_ACCESS_REMOTE_WRITE),
            nullptr);
  EXPECT_EQ(errno, EINVAL) << "without the right to write here";
  EXPECT_EQ(verbs.RegMr(pd, reinterpret_cast<void*>(4096), 64, 0), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(verbs.AllocMw(pd, IBV_MW_TYPE_2), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_srq_init_attr attr = {};
  attr.attr.max_wr = 9;
  attr.attr.max_sge = 1;
  EXPECT_EQ(verbs.CreateSrq(pd, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(verbs.DeallocPd(pd), 0);
  EXPECT_TRUE(verbs.leaks().empty());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
