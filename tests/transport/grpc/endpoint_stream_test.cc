#include "transport/grpc/endpoint_stream.h"

#include <dirent.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/endpoint_pair.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/pollset.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/grpc/polling/plain_tcp.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace core {
namespace {

int OpenDescriptors() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

class CountedReads : public EndpointStreamEvents {
 public:
  void Hold() override {}
  bool WriteLater() override { return true; }
  bool OnRead(grpc_error_handle error, bool may_block) override {
    if (is_locked && !may_block) return false;
    stream->EndRead();
    if (std::this_thread::get_id() != owner) {
      reads_elsewhere.Notify();
    } else if (error.ok()) {
      ++reads;
    } else {
      ++errors;
    }
    return true;
  }
  bool OnWritten(grpc_error_handle, bool may_block) override {
    if (is_locked && !may_block) return false;
    if (std::this_thread::get_id() != owner) writes_elsewhere.Notify();
    return true;
  }
  bool is_locked = false;  // another thread holds the owner's lock
  EndpointStream* stream = nullptr;
  const std::thread::id owner = std::this_thread::get_id();
  int reads = 0;
  int errors = 0;
  absl::Notification reads_elsewhere;   // once another thread has read
  absl::Notification writes_elsewhere;  // once another thread has written
};

// The context of a thread that waits in gRPC, and of a test.
class Context : public grpc_core::ExecCtx {
 public:
  // If `is_ready`, the thread has work of its own, and no time for reads.
  explicit Context(bool is_ready = false)
      : grpc_core::ExecCtx(/*fl=*/0), is_ready_(is_ready) {}

 private:
  bool CheckReadyToFinish() override { return is_ready_; }

  const bool is_ready_;
};

// A fixture with two of gRPC's endpoints over one connection. A stream has the
// client's end.
class EndpointStreamTest : public testing::Test {
 protected:
  EndpointStreamTest() {
    grpc_init();
    pollset_ = static_cast<grpc_pollset*>(gpr_zalloc(grpc_pollset_size()));
    grpc_core::ExecCtx context;
    grpc_pollset_init(pollset_, &mu_);
    pair_ = grpc_iomgr_create_endpoint_pair("test", nullptr);
    // Looks up gRPC's functions. A process does this once.
    EXPECT_TRUE(IsPlainTcp(*pair_.client));
    context.Flush();
    descriptors_ = OpenDescriptors();
    stream_ = std::make_unique<EndpointStream>(pair_.client, &events_);
    events_.stream = stream_.get();
    lifeline_ = std::make_unique<fabric::tcp::Endpoint>(stream_.get());
  }
  ~EndpointStreamTest() override {
    {
      grpc_core::ExecCtx context;
      // Ends the read in flight, whose closure is part of the stream.
      stream_->Shutdown(GRPC_ERROR_CREATE("the test ends"));
      context.Flush();
      stream_ = nullptr;
      grpc_endpoint_destroy(pair_.server);
      grpc_closure done;
      GRPC_CLOSURE_INIT(
          &done, [](void*, grpc_error_handle) {}, nullptr, nullptr);
      gpr_mu_lock(mu_);
      grpc_pollset_shutdown(pollset_, &done);
      gpr_mu_unlock(mu_);
      context.Flush();
      grpc_pollset_destroy(pollset_);
    }
    gpr_free(pollset_);
    grpc_shutdown_blocking();
  }

  void Say(const std::string& bytes) {
    ASSERT_EQ(send(grpc_endpoint_get_fd(pair_.server), bytes.data(),
                   bytes.size(), MSG_DONTWAIT),
              static_cast<ssize_t>(bytes.size()));
  }
  // Handles events until there are none. One call handles at most one event.
  void Poll() {
    for (int i = 0; i < 10; ++i) {
      gpr_mu_lock(mu_);
      grpc_pollset_worker* worker = nullptr;
      EXPECT_TRUE(grpc_pollset_work(pollset_, &worker,
                                    grpc_core::Timestamp::ProcessEpoch())
                      .ok());
      gpr_mu_unlock(mu_);
      grpc_core::ExecCtx::Get()->Flush();
    }
  }
  // Begins a read. Returns the number of reads that have ended.
  int Read() {
    events_.reads = 0;
    stream_->Read();
    Poll();
    return events_.reads;
  }
  // Alternately receives and begins a read, until the read waits for new input.
  void ReadUntilEmpty() {
    do {
      EXPECT_EQ(stream_->Receive(lifeline_.get()).value(), 0);
    } while (Read() > 0);
  }

  grpc_endpoint_pair pair_;
  grpc_pollset* pollset_;
  gpr_mu* mu_;
  int descriptors_;
  CountedReads events_;
  std::unique_ptr<EndpointStream> stream_;
  std::unique_ptr<fabric::tcp::Endpoint> lifeline_;
};

// Tests that many connections take no more descriptors than with stock gRPC.
// The socket is the endpoint's own.
TEST_F(EndpointStreamTest, ReceivesDirectlyWithoutADescriptorOfItsOwn) {
  const Context context;
  ASSERT_TRUE(stream_->receives_directly());
  EXPECT_EQ(stream_->input_fd(), grpc_endpoint_get_fd(pair_.client));
  ReadUntilEmpty();
  EXPECT_EQ(OpenDescriptors(), descriptors_);
}

TEST_F(EndpointStreamTest, EachInputEndsARead) {
  const Context context;
  ReadUntilEmpty();
  for (const char first : {'a', 'b'}) {
    Say(std::string(2, first));
    Poll();
    EXPECT_EQ(events_.reads, 1);
    EXPECT_EQ(stream_->Receive(lifeline_.get()).value(), 2);
    EXPECT_EQ(stream_->Receive(lifeline_.get()).value(), 0);
    EXPECT_EQ(Read(), 0);
  }
}

TEST_F(EndpointStreamTest, EndOfTheConnectionEndsARead) {
  const Context context;
  ReadUntilEmpty();
  shutdown(grpc_endpoint_get_fd(pair_.server), SHUT_WR);
  Poll();
  EXPECT_EQ(events_.reads, 1);
  EXPECT_FALSE(stream_->Receive(lifeline_.get()).ok());
}

TEST_F(EndpointStreamTest, ShutdownEndsTheReadThatWaits) {
  const Context context;
  ReadUntilEmpty();
  EXPECT_EQ(events_.errors, 0);
  stream_->Shutdown(GRPC_ERROR_CREATE("test"));
  Poll();
  EXPECT_EQ(events_.errors, 1);
}

// Tests other endpoints, such as TLS endpoints, whose bytes differ from the
// bytes of the socket.
TEST_F(EndpointStreamTest, OtherEndpointsReadThemselves) {
  const Context context;
  const grpc_endpoint_vtable functions = *pair_.client->vtable;
  grpc_endpoint other = *pair_.client;
  other.vtable = &functions;
  EXPECT_EQ(PlainTcpSocket(other), nullptr);
}

// Tests an owner without room. The owner begins the next read before it has
// received the input. The epoll set reports the input only once, but each read
// must end.
TEST_F(EndpointStreamTest, InputThatWasNotReceivedEndsTheNextReadToo) {
  const Context context;
  ReadUntilEmpty();
  // Makes a waiting thread poll the socket during the read. The thread finds
  // nothing.
  EXPECT_EQ(stream_->Receive(lifeline_.get()).value(), 0);
  Say("input");
  Poll();
  EXPECT_EQ(events_.reads, 1);
  EXPECT_EQ(Read(), 1);
  EXPECT_EQ(Read(), 1);
}

// Tests a peer that keeps the socket full. The thread must leave with its own
// work, and another thread must read.
TEST_F(EndpointStreamTest, ThreadWithWorkOfItsOwnDoesNotRead) {
  Say("input");
  {
    const Context context(/*is_ready=*/true);
    stream_->Read();
  }
  EXPECT_EQ(events_.reads, 0);
  EXPECT_TRUE(
      events_.reads_elsewhere.WaitForNotificationWithTimeout(absl::Minutes(1)));
}

// Tests the same for a thread that has no work yet. Meanwhile the thread would
// handle no other connection.
TEST_F(EndpointStreamTest, ThreadReadsAFullSocketOnlyAFewTimes) {
  const Context context;
  Say("input");
  int reads = 0;
  while (reads < 100 && Read() == 1) ++reads;
  EXPECT_GT(reads, 1);
  EXPECT_LT(reads, 10);
  EXPECT_TRUE(
      events_.reads_elsewhere.WaitForNotificationWithTimeout(absl::Minutes(1)));
}

// Tests a connection whose lock another thread holds, perhaps for long. The
// thread that polls must go on, because it polls for other connections, too.
TEST_F(EndpointStreamTest, OnlyTheExecutorWaitsForTheLockOfAReader) {
  const Context context;
  Say("input");
  events_.is_locked = true;
  EXPECT_EQ(Read(), 0);
  EXPECT_TRUE(
      events_.reads_elsewhere.WaitForNotificationWithTimeout(absl::Minutes(1)));
}

TEST_F(EndpointStreamTest, OnlyTheExecutorWaitsForTheLockOfAWriter) {
  const Context context;
  memory::Block block = memory::AllocateBlock(10).value();
  events_.is_locked = true;
  stream_->Write({block.AsBytes()});
  grpc_core::ExecCtx::Get()->Flush();
  EXPECT_TRUE(events_.writes_elsewhere.WaitForNotificationWithTimeout(
      absl::Minutes(1)));
}

TEST_F(EndpointStreamTest, EmptySocketBeginsANewRow) {
  const Context context;
  ReadUntilEmpty();
  for (int row = 0; row < 10; ++row) {
    Say("i");
    Poll();
    EXPECT_EQ(Read(), 1);
    EXPECT_EQ(stream_->Receive(lifeline_.get()).value(), 1);
    ReadUntilEmpty();
  }
}

}  // namespace
}  // namespace core
}  // namespace penstock
