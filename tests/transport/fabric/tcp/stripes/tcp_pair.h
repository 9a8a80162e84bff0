// A pair of connected TCP sockets over loopback.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_STRIPES_TCP_PAIR_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_STRIPES_TCP_PAIR_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace stripes {

struct TcpPair {
  TcpPair() {
    const base::UniqueFd listener(
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(listener.get(), any, length), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &length), 0);
    client.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), any, length), 0);
    server.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(server.valid());
  }

  base::UniqueFd client, server;
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_STRIPES_TCP_PAIR_H_
