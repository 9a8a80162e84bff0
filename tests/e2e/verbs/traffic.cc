#include "tests/e2e/verbs/traffic.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/verbs/echo.h"
#include "tests/e2e/verbs/rig.h"

namespace penstock::e2e {
namespace {

// The deadline of a call, in seconds. Far longer than any fault in these tests
// lasts.
constexpr int kDeadlineS = 240;

}  // namespace

Traffic::Traffic(std::shared_ptr<grpc::Channel> channel,
                 std::vector<size_t> sizes)
    : channel_(std::move(channel)),
      stub_(TestService::NewStub(channel_)),
      sizes_(std::move(sizes)) {
  for (int lane = 0; lane < kLanes; ++lane) {
    threads_.emplace_back([this, lane] {
      if (lane % 2 == 0) {
        CallUntilStopped(lane);
      } else {
        StreamUntilStopped(lane);
      }
    });
  }
}

bool Traffic::AwaitMessages(int count, std::chrono::seconds time) const {
  std::array<int, kLanes> wanted;
  for (int i = 0; i < kLanes; ++i) wanted[i] = received_[i] + count;
  return Await(time, [&] {
    for (int i = 0; i < kLanes; ++i) {
      if (received_[i] < wanted[i]) return false;
    }
    return true;
  });
}

void Traffic::Stop() {
  stopped_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Traffic::CallUntilStopped(int lane) {
  for (uint32_t number = 0; !stopped_; ++number) {
    const grpc::Status status =
        Echo(stub_.get(), IdOf(lane, number), SizeOf(number), kDeadlineS);
    ASSERT_TRUE(status.ok()) << "call " << number << " of " << SizeOf(number)
                             << " bytes: " << status.error_message();
    ++received_[lane];
  }
}

void Traffic::StreamUntilStopped(int lane) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(kDeadlineS));
  auto stream = stub_->FullDuplexCall(&context);
  uint32_t written = 0;
  std::thread writer([&] {
    StreamingOutputCallRequest request;
    for (; !stopped_; ++written) {
      *request.mutable_payload() =
          NumberedPayload(IdOf(lane, written), SizeOf(written));
      if (!stream->Write(request)) break;
    }
    stream->WritesDone();
  });
  StreamingOutputCallResponse response;
  uint32_t read = 0;
  for (; stream->Read(&response); ++read) {
    EXPECT_TRUE(IsNumbered(response.payload(), IdOf(lane, read), SizeOf(read)))
        << "message " << read << " of stream " << lane;
    ++received_[lane];
  }
  writer.join();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << "stream " << lane << ": "
                           << status.error_message();
  EXPECT_EQ(read, written) << "stream " << lane;
}

uint32_t Traffic::IdOf(int lane, uint32_t number) const {
  return number * kLanes + lane;
}

size_t Traffic::SizeOf(uint32_t number) const {
  return sizes_[number % sizes_.size()];
}

ErrorTap::ErrorTap() {
  original_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  file_ = memfd_create("stderr", MFD_CLOEXEC);
  dup2(file_, STDERR_FILENO);
}

ErrorTap::~ErrorTap() {
  dup2(original_, STDERR_FILENO);
  const std::string text = Text();
  EXPECT_EQ(write(STDERR_FILENO, text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
  close(original_);
  close(file_);
}

std::string ErrorTap::Text() const {
  std::string text;
  char part[4096];
  ssize_t size;
  while ((size = pread(file_, part, sizeof part, text.size())) > 0) {
    text.append(part, size);
  }
  return text;
}

// Counts the RDMA objects that threads of this process have made. The kernel
// records the thread that made an object instead of the process.
RdmaObjects::RdmaObjects() {
  std::string threads;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    absl::StrAppend(&threads, threads.empty() ? "" : "|", task->d_name);
  }
  closedir(tasks);
  for (const char* kind : {"cm_id", "cq", "mr", "pd", "qp", "srq"}) {
    const std::string count =
        Shell(absl::StrCat("rdma resource show ", kind, " | grep -cE ' pid (",
                           threads, ") ' || true"));
    absl::StrAppend(&text, text.empty() ? "" : ", ", kind, " ", count);
  }
}

}  // namespace penstock::e2e
