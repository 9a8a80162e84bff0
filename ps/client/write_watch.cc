#include "ps/client/write_watch.h"

#include <algorithm>

#include "absl/time/time.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/calls.h"

namespace penstock::ps {
namespace {

// The time between two looks at the servers. About the redraw interval of a
// progress line.
constexpr absl::Duration kInterval = absl::Milliseconds(250);
// Limits how long the end of a checkpoint waits for a server.
constexpr absl::Duration kTimeout = absl::Seconds(1);

}  // namespace

WriteWatch::WriteWatch(
    const TrainingConnection& connection,
    const std::function<void(uint64_t done, uint64_t total)>& written)
    : written_(written),
      servers_(connection.channels()),
      thread_([this] { ThreadLoop(); }) {}

WriteWatch::~WriteWatch() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void WriteWatch::ThreadLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const absl::Time next = base::SteadyNow() + kInterval;
      while (!stop_ && base::SteadyNow() < next) wake_.WaitUntil(&mu_, next);
      if (stop_) return;
    }
    AskOnce();
  }
}

void WriteWatch::AskOnce() {
  const auto replies =
      servers_.Call("Describe", v1::DescribeRequest(), kTimeout);
  if (!replies.ok()) return;
  uint64_t done = 0;
  uint64_t total = 0;
  for (const grpc::ByteBuffer& bytes : *replies) {
    v1::ServerReport report;
    if (!tensor::ToProto(bytes, &report).ok()) return;
    done += report.checkpoint_written_bytes();
    // A finished server reports its written bytes, and a total of 0.
    total += std::max(report.checkpoint_written_bytes(),
                      report.checkpoint_total_bytes());
  }
  if (total > 0) written_(done, total);
}

}  // namespace penstock::ps
