#include "transport/grpc/polling/socket_users.h"

#include <atomic>

namespace penstock {
namespace core {
namespace {

std::atomic<int> g_users{0};

}  // namespace

SocketUser::SocketUser() { g_users.fetch_add(1, std::memory_order_relaxed); }

SocketUser::~SocketUser() { g_users.fetch_sub(1, std::memory_order_relaxed); }

bool SocketUser::Any() { return g_users.load(std::memory_order_relaxed) > 0; }

}  // namespace core
}  // namespace penstock
