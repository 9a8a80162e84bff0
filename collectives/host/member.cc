#include "collectives/host/member.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "collectives/host/control.h"
#include "collectives/host/thread_state.h"
#include "transport/base/status_util.h"
#include "transport/fabric/shm/segment.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/fork_count.h"

namespace penstock::collectives {

absl::StatusOr<std::unique_ptr<OwnMember>> OwnMember::Create(
    const SegmentSizes& sizes) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  auto segment =
      fabric::shm::Segment::Create("penstock-collective", sizes.total());
  if (!segment.ok()) return segment.status();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return base::ErrnoStatus(errno, "pipe2");
  }
  std::unique_ptr<OwnMember> member(new OwnMember(*std::move(segment), sizes,
                                                  base::UniqueFd(ends[1]),
                                                  base::UniqueFd(ends[0])));
  (*loop)->Post(
      [loop = *loop, shared = std::weak_ptr<Shared>(member->shared_)] {
        const std::shared_ptr<Shared> alive = shared.lock();
        if (alive == nullptr) return;
        NameThread(alive->control());
        Beat(loop, shared);
      });
  return member;
}

OwnMember::OwnMember(fabric::shm::Segment segment, const SegmentSizes& sizes,
                     base::UniqueFd own_end, base::UniqueFd peers_end)
    : fork_count_(progress::ForkCount()),
      sizes_(sizes),
      shared_(std::make_shared<Shared>(std::move(segment))),
      own_end_(std::move(own_end)),
      peers_end_(std::move(peers_end)) {}

OwnMember::~OwnMember() {
  if (progress::ForkCount() != fork_count_) return;
  control().left.store(1, std::memory_order_release);
}

void OwnMember::NameThread(Control* control) {
  const auto thread = static_cast<uint64_t>(syscall(SYS_gettid));
  const absl::optional<ThreadState> state = StateOfThread(thread);
  if (!state.has_value()) return;
  control->beating_since.store(state->started, std::memory_order_relaxed);
  control->beating_thread.store(thread, std::memory_order_release);
}

void OwnMember::Beat(progress::EventLoop* loop,
                     const std::weak_ptr<Shared>& shared) {
  const std::shared_ptr<Shared> alive = shared.lock();
  if (alive == nullptr) return;
  alive->control()->heartbeat.fetch_add(1, std::memory_order_relaxed);
  loop->RunAfter(kBeat, [loop, shared] { Beat(loop, shared); });
}

absl::StatusOr<std::unique_ptr<PeerMember>> PeerMember::Map(
    progress::ForeignFd memory, progress::ForeignFd life,
    const SegmentSizes& sizes) {
  auto segment =
      fabric::shm::PeerSegment::Map(std::move(memory), sizes.total());
  if (!segment.ok()) return segment.status();
  // Refuses files other than pipes, because poll() may block for them.
  if (fcntl(life.get(), F_GETPIPE_SZ) < 0) {
    return absl::InvalidArgumentError("the peer's sign of life is no pipe");
  }
  return std::unique_ptr<PeerMember>(
      new PeerMember(*std::move(segment), std::move(life), sizes));
}

}  // namespace penstock::collectives
