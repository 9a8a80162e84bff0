#include "transport/grpc/endpoint_stream.h"

#include <climits>
#include <utility>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/executor.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/tcp/receive.h"
#include "transport/grpc/internal/slice_bytes.h"
#include "transport/grpc/polling/plain_tcp.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace core {
namespace {

// Caps the reads of a full socket that one thread makes in a row. A read takes
// up to 1 MiB, so that many reads take about 1 ms, the bound for the turn of
// another source (progress/turns.h).
constexpr int kMostReadsInARow = 4;

void Forward(void* outer, grpc_error_handle error) {
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, static_cast<grpc_closure*>(outer),
                          error);
}

// Runs `read` later, unless this thread has work of its own now. Then a thread
// of the executor runs `read`.
void RunRead(grpc_closure* read, grpc_error_handle error) {
  if (grpc_core::ExecCtx::Get()->IsReadyToFinish()) {
    grpc_core::Executor::Run(read, error);
  } else {
    Forward(read, error);
  }
}

void ForwardRead(void* outer, grpc_error_handle error) {
  RunRead(static_cast<grpc_closure*>(outer), error);
}

}  // namespace

EndpointStream::EndpointStream(grpc_endpoint* endpoint,
                               EndpointStreamEvents* events)
    : endpoint_(endpoint),
      events_(events),
      fork_count_(progress::ForkCount()),
      socket_(PlainTcpSocket(*endpoint)) {
  GRPC_CLOSURE_INIT(
      &read_outer_,
      [](void* arg, grpc_error_handle error) {
        auto* const self = static_cast<EndpointStream*>(arg);
        if (!self->events_->OnRead(error, /*may_block=*/false)) {
          grpc_core::Executor::Run(&self->read_blocking_, error);
        }
      },
      this, nullptr);
  GRPC_CLOSURE_INIT(
      &read_blocking_,
      [](void* self, grpc_error_handle error) {
        static_cast<EndpointStream*>(self)->events_->OnRead(error,
                                                            /*may_block=*/true);
      },
      this, nullptr);
  GRPC_CLOSURE_INIT(
      &write_outer_,
      [](void* arg, grpc_error_handle error) {
        auto* const self = static_cast<EndpointStream*>(arg);
        if (!self->events_->OnWritten(error, /*may_block=*/false)) {
          grpc_core::Executor::Run(&self->write_blocking_, error);
        }
      },
      this, nullptr);
  GRPC_CLOSURE_INIT(
      &write_blocking_,
      [](void* self, grpc_error_handle error) {
        static_cast<EndpointStream*>(self)->events_->OnWritten(
            error, /*may_block=*/true);
      },
      this, nullptr);
}

// Leaks the endpoint in a forked child. Destroying it would shut down the
// socket, which ends the connection for the parent, too.
EndpointStream::~EndpointStream() {
  if (!IsForeign()) grpc_endpoint_destroy(endpoint_);
}

bool EndpointStream::IsForeign() const {
  return fork_count_ != progress::ForkCount();
}

void EndpointStream::Read() {
  events_->Hold();
  if (socket_ != nullptr) {
    if (!may_have_input_) {
      reads_in_a_row_ = 0;
      grpc_fd_notify_on_read(socket_, &read_outer_);
    } else if (reads_in_a_row_ + 1 < kMostReadsInARow) {
      ++reads_in_a_row_;
      RunRead(&read_outer_, absl::OkStatus());
    } else {
      grpc_core::Executor::Run(&read_outer_, absl::OkStatus());
    }
    return;
  }
  GRPC_CLOSURE_INIT(&read_inner_, ForwardRead, &read_outer_, nullptr);
  grpc_endpoint_read(endpoint_, read_buffer_.c_slice_buffer(), &read_inner_,
                     /*urgent=*/false, /*min_progress_size=*/1);
}

absl::StatusOr<size_t> EndpointStream::Receive(
    fabric::tcp::Endpoint* lifeline) {
  absl::StatusOr<size_t> received = fabric::tcp::Receive(input_fd(), lifeline);
  may_have_input_ = !received.ok() || *received > 0;
  return received;
}

void EndpointStream::Write(std::vector<memory::Bytes> pieces) {
  events_->Hold();
  write_buffer_.Clear();
  for (memory::Bytes& piece : pieces) {
    write_buffer_.Append(ToSlice(std::move(piece)));
  }
  GRPC_CLOSURE_INIT(&write_inner_, Forward, &write_outer_, nullptr);
  grpc_endpoint_write(endpoint_, write_buffer_.c_slice_buffer(), &write_inner_,
                      nullptr, INT_MAX);
  burst_.EndWrite(base::SteadyNow());
}

bool EndpointStream::Holds(size_t bytes, uint64_t received) {
  return burst_.MayWait(bytes, received, base::SteadyNow()) &&
         events_->WriteLater();
}

void EndpointStream::Shutdown(grpc_error_handle why) {
  if (shut_down_ || IsForeign()) return;
  shut_down_ = true;
  grpc_endpoint_shutdown(endpoint_, why);
}

}  // namespace core
}  // namespace penstock
