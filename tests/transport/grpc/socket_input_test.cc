#include "transport/grpc/polling/socket_input.h"

#include <dirent.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/endpoint_pair.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/pollset.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/grpc/endpoint_stream.h"

namespace {

// True while gRPC can add no descriptor to its epoll set, as if the user had
// reached fs.epoll.max_user_watches.
bool g_set_is_full = false;

}  // namespace

// Takes the place of the C library's function in the whole process.
extern "C" int epoll_ctl(int set, int operation, int fd, epoll_event* event) {
  if (g_set_is_full && operation == EPOLL_CTL_ADD) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(syscall(SYS_epoll_ctl, set, operation, fd, event));
}

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

// A fixture with two of gRPC's endpoints over one connection.
class SocketInputTest : public testing::Test {
 protected:
  SocketInputTest() {
    grpc_init();
    pollset_ = static_cast<grpc_pollset*>(gpr_zalloc(grpc_pollset_size()));
    grpc_core::ExecCtx context;
    grpc_pollset_init(pollset_, &mu_);
    // Makes the first input of the process, which looks for gRPC's functions.
    pair_ = grpc_iomgr_create_endpoint_pair("test", nullptr);
    SocketInput::Create(pair_.client);
    GRPC_CLOSURE_INIT(
        &on_input_,
        [](void* self, grpc_error_handle) {
          ++static_cast<SocketInputTest*>(self)->inputs_;
        },
        this, nullptr);
  }
  ~SocketInputTest() override {
    {
      grpc_core::ExecCtx context;
      if (pair_.client != nullptr) grpc_endpoint_destroy(pair_.client);
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
  static std::string Receive(const SocketInput& input) {
    char bytes[100];
    const ssize_t size = recv(input.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
    return size < 0 ? "none" : std::string(bytes, static_cast<size_t>(size));
  }
  // Handles the events that there are. One call handles at most one event.
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

  grpc_endpoint_pair pair_;
  grpc_pollset* pollset_;
  gpr_mu* mu_;
  grpc_closure on_input_;
  int inputs_ = 0;
};

TEST_F(SocketInputTest, NotifiesOfEachInput) {
  grpc_core::ExecCtx context;
  const auto input = SocketInput::Create(pair_.client);
  ASSERT_NE(input, nullptr);
  for (const char* text : {"first", "second"}) {
    input->Notify(&on_input_);
    inputs_ = 0;
    Poll();
    // Ignores the event of the creation, which reports possible earlier input.
    if (inputs_ > 0) {
      EXPECT_EQ(Receive(*input), "none");
      input->Notify(&on_input_);
      inputs_ = 0;
    }
    Say(text);
    Poll();
    EXPECT_EQ(inputs_, 1);
    EXPECT_EQ(Receive(*input), text);
    EXPECT_EQ(Receive(*input), "none");
  }
}

TEST_F(SocketInputTest, NotifiesOfTheEnd) {
  grpc_core::ExecCtx context;
  const auto input = SocketInput::Create(pair_.client);
  ASSERT_NE(input, nullptr);
  Poll();
  shutdown(grpc_endpoint_get_fd(pair_.server), SHUT_WR);
  input->Notify(&on_input_);
  Poll();
  EXPECT_EQ(inputs_, 1);
  EXPECT_EQ(Receive(*input), "");
}

TEST_F(SocketInputTest, WakeRunsTheClosureThatWaits) {
  grpc_core::ExecCtx context;
  const auto input = SocketInput::Create(pair_.client);
  ASSERT_NE(input, nullptr);
  Poll();
  input->Notify(&on_input_);
  context.Flush();
  if (inputs_ > 0) input->Notify(&on_input_);  // creation counts as an event
  context.Flush();
  inputs_ = 0;
  input->Wake();
  context.Flush();
  EXPECT_EQ(inputs_, 1);
}

// Tests that no entry stays in the epoll set, because such an entry would cause
// events for freed memory.
TEST_F(SocketInputTest, LeavesNothingBehind) {
  grpc_core::ExecCtx context;
  const int before = OpenDescriptors();
  auto input = SocketInput::Create(pair_.client);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(OpenDescriptors(), before + 1);
  const int fd = input->fd();
  input = nullptr;
  context.Flush();
  EXPECT_EQ(OpenDescriptors(), before);
  // Makes gRPC reuse the freed entry. The new closure must not get events of
  // the socket.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(std::min(ends[0], ends[1]), fd);
  grpc_fd* const other = grpc_fd_create(ends[0], "test", false);
  Poll();
  grpc_fd_notify_on_read(other, &on_input_);
  Say("for the endpoint only");
  Poll();
  EXPECT_EQ(inputs_, 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  Poll();
  EXPECT_EQ(inputs_, 1);
  grpc_fd_orphan(other, nullptr, nullptr, "test");
  close(ends[1]);
}

// Tests other endpoints, such as TLS endpoints. Their bytes are not the bytes
// of the socket.
TEST_F(SocketInputTest, OtherEndpointsHaveNone) {
  grpc_core::ExecCtx context;
  const grpc_endpoint_vtable functions = *pair_.client->vtable;
  grpc_endpoint other = *pair_.client;
  other.vtable = &functions;
  EXPECT_EQ(SocketInput::Create(&other), nullptr);
}

TEST_F(SocketInputTest, HalfOfTheDescriptorsAreForConnections) {
  grpc_core::ExecCtx context;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  int next = dup(0);
  close(next);
  rlimit limit = before;
  limit.rlim_cur = static_cast<rlim_t>(2 * next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(SocketInput::Create(pair_.client), nullptr);
  limit.rlim_cur = static_cast<rlim_t>(2 * next + 2);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_NE(SocketInput::Create(pair_.client), nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Tests a full epoll set. Input would never be noticed, so the endpoint must
// continue to read.
TEST_F(SocketInputTest, FullSetOfThePollerIsNoticed) {
  grpc_core::ExecCtx context;
  const int before = OpenDescriptors();
  g_set_is_full = true;
  EXPECT_EQ(SocketInput::Create(pair_.client), nullptr);
  g_set_is_full = false;
  context.Flush();
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_NE(SocketInput::Create(pair_.client), nullptr);
}

class CountedReads : public EndpointStreamEvents {
 public:
  void Hold() override {}
  void OnRead(grpc_error_handle) override {
    stream->EndRead();
    ++reads;
  }
  void OnWritten(grpc_error_handle) override {}
  EndpointStream* stream = nullptr;
  int reads = 0;
};

// Tests an owner without room, which reads again before it has received the
// input. The epoll set reports the input only once, but each read must end.
TEST_F(SocketInputTest, InputThatWasNotReceivedEndsTheNextReadToo) {
  grpc_core::ExecCtx context;
  CountedReads events;
  EndpointStream stream(pair_.client, &events);
  events.stream = &stream;
  pair_.client = nullptr;
  fabric::tcp::Endpoint lifeline(&stream);
  stream.ReceiveDirectly();
  ASSERT_TRUE(stream.receives_directly());
  const auto read = [&] {
    events.reads = 0;
    stream.Read();
    Poll();
    return events.reads;
  };
  do {  // creation counts as an event, because there may be earlier input
    EXPECT_EQ(stream.Receive(&lifeline).value(), 0);
  } while (read() > 0);
  // Expects no input: a waiting thread looks at the socket during the read, and
  // finds nothing.
  EXPECT_EQ(stream.Receive(&lifeline).value(), 0);
  Say("input");
  Poll();
  EXPECT_EQ(events.reads, 1);
  EXPECT_EQ(read(), 1);
  EXPECT_EQ(read(), 1);
}

}  // namespace
}  // namespace core
}  // namespace penstock
