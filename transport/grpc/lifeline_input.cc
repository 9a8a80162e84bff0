#include "transport/grpc/lifeline_input.h"

#include <utility>

#include "src/core/lib/slice/slice_buffer.h"
#include "transport/fabric/tcp/receive.h"

namespace penstock {
namespace core {
namespace {

// Limits the bytes of one read, because other threads may wait for the lock.
constexpr size_t kMostReadBytes = 1024 * 1024;
// Limits the bytes of one poll. The thread has other sources to poll, too.
constexpr size_t kMostPolledBytes = 256 * 1024;
// The number of reads after which a connection counts as busy. Most connections
// have a fast path earlier, or were made for a few calls.
constexpr int kReadsOfBusy = 8;

}  // namespace

void LifelineInput::Start() {
  DeliverReadBuffer();
  wants_read_ = true;
}

absl::Status LifelineInput::OnRead() {
  wants_read_ = true;
  // Makes the next Read() try the socket immediately, unless this call empties
  // the socket, because gRPC reports input only once.
  stream_->EndRead();
  DeliverReadBuffer();
  if (!stream_->receives_directly()) return absl::OkStatus();
  const absl::StatusOr<bool> received =
      Receive(kMostReadBytes, /*until_empty=*/true);
  has_input_ = received.ok() && *received;
  if (has_input_ && reads_ < kReadsOfBusy) ++reads_;
  return received.status();
}

bool LifelineInput::TakePlaceToPoll() {
  return has_input_ && reads_ == kReadsOfBusy && !poller_.is_started() &&
         !session_->closed() && !session_->path().in_use() &&
         poller_.TakePlace();
}

void LifelineInput::StartPolling(InputPoller::Receive poll) {
  poller_.Start(stream_->input_fd(), std::move(poll));
}

absl::StatusOr<bool> LifelineInput::Poll() {
  if (!poller_.is_started() || stream_->is_shut_down()) return false;
  if (poller_.is_quiet()) {
    poller_.Stop();
    return false;
  }
  return Receive(kMostPolledBytes, /*until_empty=*/false);
}

void LifelineInput::ReadOn() {
  const bool reads = !session_->closed() && session_->reads();
  if (!reads || session_->path().in_use()) poller_.Stop();
  if (!reads) return;
  if (!std::exchange(wants_read_, false)) return;
  stream_->Read();
}

void LifelineInput::DeliverReadBuffer() {
  grpc_core::SliceBuffer* buffer = stream_->read_buffer();
  for (size_t i = 0; i < buffer->Count() && !session_->closed(); ++i) {
    const grpc_core::Slice slice = buffer->RefSlice(i);
    lifeline_->OnBytes({slice.data(), slice.size()});
  }
  buffer->Clear();
}

// Receives until the socket is empty, or somewhat more than `most_bytes` were
// received. Without `until_empty`, a short result counts as the end, which
// saves a system call. A polling thread does not need `until_empty`, because it
// polls again; epoll reports input only once.
absl::StatusOr<bool> LifelineInput::Receive(size_t most_bytes,
                                            bool until_empty) {
  size_t bytes = 0;
  while (bytes < most_bytes && !session_->closed() && session_->reads()) {
    const absl::StatusOr<size_t> received = stream_->Receive(lifeline_);
    if (!received.ok()) return received.status();
    bytes += *received;
    const bool is_short = *received < fabric::tcp::kLeastRoom;
    if (*received == 0 || (is_short && !until_empty)) break;
  }
  return bytes > 0;
}

}  // namespace core
}  // namespace penstock
