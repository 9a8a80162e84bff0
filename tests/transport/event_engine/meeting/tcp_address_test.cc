#include "transport/event_engine/meeting/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace event_engine {
namespace {

TcpAddress V4(const char* ip, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, ip, &address.sin_addr), 1);
  return *TcpAddress::Of(reinterpret_cast<sockaddr*>(&address), sizeof address);
}

TcpAddress V6(const char* ip, uint16_t port) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, ip, &address.sin6_addr), 1);
  return *TcpAddress::Of(reinterpret_cast<sockaddr*>(&address), sizeof address);
}

TEST(TcpAddressTest, BothEndsSeeOneAddress) {
  EXPECT_EQ(MeetingName(V4("127.0.0.1", 80)),
            MeetingName(V6("::ffff:127.0.0.1", 80)));
  EXPECT_EQ(MeetingToken(V4("10.0.0.1", 1), V4("10.0.0.2", 2)),
            MeetingToken(V6("::ffff:10.0.0.1", 1), V6("::ffff:10.0.0.2", 2)));
  EXPECT_EQ(MeetingName(V4("0.0.0.0", 80)), MeetingName(V6("::", 80)));
}

TEST(TcpAddressTest, OtherAddressesHaveOtherNames) {
  const std::string name = MeetingName(V4("127.0.0.1", 80));
  EXPECT_NE(name, MeetingName(V4("127.0.0.2", 80)));
  EXPECT_NE(name, MeetingName(V4("127.0.0.1", 81)));
  EXPECT_NE(name, MeetingName(V4("0.0.0.0", 80)));
  EXPECT_NE(name, MeetingName(V6("::1", 80)));
  EXPECT_NE(MeetingToken(V4("10.0.0.1", 1), V4("10.0.0.2", 2)),
            MeetingToken(V4("10.0.0.2", 2), V4("10.0.0.1", 1)));
}

TEST(TcpAddressTest, WhichConnectionsStayOnTheHost) {
  EXPECT_TRUE(IsOnOneHost(V4("127.0.0.1", 1), V4("127.0.0.1", 2)));
  EXPECT_TRUE(IsOnOneHost(V4("127.0.0.1", 1), V4("127.8.0.9", 2)));
  EXPECT_TRUE(IsOnOneHost(V4("10.0.0.1", 1), V4("10.0.0.1", 2)));
  EXPECT_FALSE(IsOnOneHost(V4("10.0.0.1", 1), V4("10.0.0.2", 2)));
  EXPECT_TRUE(IsOnOneHost(V6("::1", 1), V6("::1", 2)));
  EXPECT_FALSE(IsOnOneHost(V6("fe80::1", 1), V6("fe80::2", 2)));
}

TEST(TcpAddressTest, OtherFamiliesHaveNone) {
  sockaddr_storage address = {};
  address.ss_family = AF_UNIX;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_FALSE(TcpAddress::Of(any, sizeof address).has_value());
  address.ss_family = AF_INET;
  EXPECT_FALSE(TcpAddress::Of(any, sizeof(sockaddr_in) - 1).has_value());
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
