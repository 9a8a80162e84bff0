#include "transport/grpc/polling/socket_input.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "src/core/lib/iomgr/socket_utils_posix.h"
#include "transport/base/unique_fd.h"
#include "transport/grpc/polling/epoll_set.h"
#include "transport/grpc/polling/plain_tcp.h"

namespace penstock {
namespace core {
namespace {

// Returns true if gRPC's engine polls all descriptors. Other engines poll only
// the descriptors that are in a pollset.
bool EnginePollsAll() {
  return strcmp(grpc_get_poll_strategy_name(), "epoll1") == 0;
}

// Returns true if `fd` is in the upper half of the process's descriptors, which
// is kept free for connections.
bool IsForConnections(int fd) {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
         static_cast<rlim_t>(fd) >= limit.rlim_cur / 2;
}

}  // namespace

std::unique_ptr<SocketInput> SocketInput::Create(grpc_endpoint* endpoint) {
  if (!EnginePollsAll() || !IsPlainTcp(*endpoint)) return nullptr;
  base::UniqueFd fd(
      fcntl(grpc_endpoint_get_fd(endpoint), F_DUPFD_CLOEXEC, /*least=*/0));
  if (!fd.valid() || IsForConnections(fd.get())) return nullptr;
  auto input = absl::WrapUnique(new SocketInput(fd.Release()));
  return input->IsWatched() ? std::move(input) : nullptr;
}

bool SocketInput::IsWatched() const { return FindEpollSet(fd(), fd_) >= 0; }

// Takes the descriptor out of the epoll set before closing it. Closing alone
// would leave it there, because the endpoint keeps the socket open.
SocketInput::~SocketInput() {
  int fd = -1;
  grpc_fd_orphan(fd_, /*on_done=*/nullptr, &fd, "penstock-input");
  close(fd);
}

}  // namespace core
}  // namespace penstock
