#include "transport/grpc/polling/epoll_set.h"

#include <fcntl.h>
#include <unistd.h>

#include "grpc/grpc.h"
#include "gtest/gtest.h"
#include "src/core/lib/iomgr/ev_epoll1_linux.h"
#include "src/core/lib/iomgr/exec_ctx.h"

namespace penstock {
namespace core {
namespace {

class EpollSetTest : public testing::Test {
 protected:
  EpollSetTest() { grpc_init(); }
  ~EpollSetTest() override {
    set_.Forget();
    grpc_shutdown_blocking();
  }

  EpollSet set_{grpc_ev_epoll1_posix};
};

TEST_F(EpollSetTest, SeesAnEventOfADescriptorOfGrpc) {
  grpc_core::ExecCtx context;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  grpc_fd* const fd = grpc_ev_epoll1_posix.fd_create(ends[0], "test", false);
  EXPECT_FALSE(set_.MayHaveEvents());
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(set_.MayHaveEvents());
  EXPECT_TRUE(set_.MayHaveEvents()) << "looking takes no event";
  grpc_ev_epoll1_posix.fd_orphan(fd, nullptr, nullptr, "test");
  EXPECT_FALSE(set_.MayHaveEvents());
  close(ends[1]);
}

// Makes gRPC create a new set. A file that is opened first may take the old
// set's number. The search must therefore begin again.
TEST_F(EpollSetTest, FindsTheSetOfGrpcAgainAfterGrpcHasMadeANewOne) {
  {
    grpc_core::ExecCtx context;
    EXPECT_FALSE(set_.MayHaveEvents());
  }
  set_.Forget();
  grpc_shutdown_blocking();
  const int in_between = open("/dev/null", O_RDONLY | O_CLOEXEC);
  grpc_init();
  grpc_core::ExecCtx context;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  grpc_fd* const fd = grpc_ev_epoll1_posix.fd_create(ends[0], "test", false);
  EXPECT_FALSE(set_.MayHaveEvents());
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(set_.MayHaveEvents());
  grpc_ev_epoll1_posix.fd_orphan(fd, nullptr, nullptr, "test");
  close(ends[1]);
  close(in_between);
}

}  // namespace
}  // namespace core
}  // namespace penstock
