#include "transport/device/process_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/device/fake_process.h"

namespace penstock {
namespace device {
namespace {

using testing::HasSubstr;

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

uint8_t* DataOf(std::string* bytes) {
  return reinterpret_cast<uint8_t*>(&(*bytes)[0]);
}

// Returns `size` bytes of a file, from `offset` on.
std::string ReadFile(int fd, uint64_t offset, size_t size) {
  std::string bytes(size, 0);
  const ssize_t got = pread(fd, &bytes[0], size, static_cast<off_t>(offset));
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

int OpenDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(ProcessDevicesTest, CopiesByAddressFromAndToWhicheverDevice) {
  std::mt19937 random(1);
  FakeProcess process;
  for (int device : {0, 1}) {
    for (size_t size : {size_t{1}, size_t{70000}, size_t{3} << 20}) {
      const std::string bytes = RandomBytes(&random, size);
      const auto range = process.OnDevice(bytes, device);
      std::string host(size, 0);
      ASSERT_TRUE(process.access()->CopyToHost(range, DataOf(&host)).ok());
      EXPECT_TRUE(host == bytes);
      std::string back = RandomBytes(&random, size);
      ASSERT_TRUE(process.access()
                      ->CopyFromHost({DataOf(&back), size},
                                     const_cast<uint8_t*>(range.data()))
                      .ok());
      EXPECT_TRUE(process.Read(range.data(), size) == back);
    }
  }
  EXPECT_TRUE(process.access()->CopyToHost({}, nullptr).ok());
  EXPECT_TRUE(process.access()->CopyFromHost({}, nullptr).ok());
}

TEST(ProcessDevicesTest, AnAddressThatIsNoDevicesIsAnError) {
  FakeProcess process;
  std::string host(100, 0);
  const absl::Span<const uint8_t> range(DataOf(&host), 50);
  EXPECT_TRUE(absl::IsInvalidArgument(
      process.access()->CopyToHost(range, DataOf(&host))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      process.access()->CopyFromHost(range, DataOf(&host))));
  EXPECT_FALSE(process.access()->ExportDmabuf(range).ok());
}

TEST(ProcessDevicesTest, SaysOnWhichDeviceARangeLies) {
  FakeProcess process;
  for (int device : {0, 1}) {
    const auto range = process.OnDevice(std::string(100, 'x'), device);
    EXPECT_EQ(process.access()->OrdinalOf(range.subspan(50)).value(), device);
  }
  EXPECT_FALSE(process.access()->OrdinalOf({nullptr, 1}).ok());
}

TEST(ProcessDevicesTest, EachCallOfACopyMayFail) {
  FakeProcess process;
  const auto range = process.OnDevice(std::string(3 << 20, 'x'));
  std::string host(range.size(), 0);
  const auto check = [](const absl::Status& status) {
    EXPECT_THAT(status.message(), HasSubstr("CUDA"));
  };
  // Allows calls that fail without an error. Without slots, for example, the
  // driver copies.
  const FakeProcess::Failures failures = process.FailEach(
      abi::kOperatingSystem,
      [&] { return process.access()->CopyToHost(range, DataOf(&host)); },
      check);
  EXPECT_GT(failures.errors, 5);
  EXPECT_TRUE(host == std::string(3 << 20, 'x'));
}

TEST(ProcessDevicesTest, ALostDeviceLeavesTheOtherOne) {
  FakeProcess process;
  const auto lost = process.OnDevice("lost", 0);
  const auto other = process.OnDevice("here", 1);
  const auto first = process.devices()->At(0);
  ASSERT_TRUE(first.ok());
  (void)(*first)->device->Check(abi::kIllegalAddress, "run a kernel");
  std::string host(4, 0);
  EXPECT_TRUE(
      absl::IsUnavailable(process.access()->CopyToHost(lost, DataOf(&host))));
  ASSERT_TRUE(process.access()->CopyToHost(other, DataOf(&host)).ok());
  EXPECT_EQ(host, "here");
}

TEST(ExportDmabufTest, RangesAreWhereTheOffsetSays) {
  std::mt19937 random(2);
  FakeProcess process;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const int before = OpenDescriptors();
  for (size_t size : {size_t{1}, size_t{4096}, size_t{100001}}) {
    const std::string bytes = RandomBytes(&random, size);
    const auto range = process.OnDevice(bytes, 1);
    for (int i = 0; i < 20; ++i) {
      const size_t begin = i == 0 ? 0 : random() % size;
      const size_t length = i == 0 ? size : 1 + random() % (size - begin);
      const auto part = range.subspan(begin, length);
      const auto dmabuf = process.access()->ExportDmabuf(part);
      ASSERT_TRUE(dmabuf.ok()) << dmabuf.status();
      EXPECT_EQ(dmabuf->offset,
                reinterpret_cast<uintptr_t>(part.data()) % page);
      EXPECT_TRUE(ReadFile(dmabuf->fd.get(), dmabuf->offset, length) ==
                  bytes.substr(begin, length));
      EXPECT_EQ(fcntl(dmabuf->fd.get(), F_GETFD), FD_CLOEXEC);
    }
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(ExportDmabufTest, WhatHasNoneSaysWhy) {
  FakeProcess process;
  const auto range = process.OnDevice(std::string(100, 'x'));
  EXPECT_FALSE(process.access()->ExportDmabuf(range.first(0)).ok());
  const absl::Status beyond =
      process.access()->ExportDmabuf({range.data(), 1 << 20}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(beyond)) << beyond;

  FakeProcess old;
  old.driver()->SetAttribute(abi::kDmaBufSupported, 0);
  const absl::Status lacking =
      old.access()->ExportDmabuf(old.OnDevice(std::string(100, 'x'))).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(lacking)) << lacking;
  EXPECT_THAT(lacking.message(), HasSubstr("open kernel modules"));
}

TEST(ExportDmabufTest, EachCallMayFailAndNoDescriptorStays) {
  FakeProcess process;
  const auto range = process.OnDevice(std::string(100, 'x'));
  const int before = OpenDescriptors();
  for (const abi::Result result :
       {abi::kOutOfMemory, abi::kNotSupported, abi::kNotPermitted}) {
    absl::Status last;
    const FakeProcess::Failures failures = process.FailEach(
        result, [&] { return process.access()->ExportDmabuf(range).status(); },
        [&](const absl::Status& status) {
          EXPECT_THAT(status.message(), HasSubstr("CUDA"));
          last = status;
        });
    EXPECT_GT(failures.calls, 3);
    EXPECT_EQ(failures.errors, failures.calls);
    // The last call is the export itself.
    EXPECT_EQ(absl::IsFailedPrecondition(last), result != abi::kOutOfMemory);
    EXPECT_EQ(OpenDescriptors(), before);
  }
}

TEST(FlushWritesTest, EachCallMayFail) {
  FakeProcess process;
  const auto range = process.OnDevice(std::string(100, 'x'), 1);
  EXPECT_TRUE(process.access()->FlushWrites(range).ok());
  const FakeProcess::Failures failures = process.FailEach(
      abi::kOperatingSystem,
      [&] { return process.access()->FlushWrites(range); },
      [](const absl::Status& status) {
        EXPECT_THAT(status.message(), HasSubstr("CUDA"));
      });
  EXPECT_GT(failures.calls, 2);
  EXPECT_EQ(failures.errors, failures.calls);
}

TEST(FlushWritesTest, ADeviceThatOrdersThemIsNotAsked) {
  FakeProcess asked, ordered;
  ordered.driver()->SetAttribute(abi::kGpuDirectRdmaWritesOrdering,
                                 abi::kWritesOrderedForOwner);
  ordered.driver()->SetAttribute(abi::kGpuDirectRdmaFlushWritesOptions, 0);
  int calls[2];
  for (FakeProcess* process : {&asked, &ordered}) {
    const auto range = process->OnDevice(std::string(100, 'x'));
    EXPECT_TRUE(process->access()->FlushWrites(range).ok());
    calls[process == &ordered] =
        process
            ->FailEach(
                abi::kOperatingSystem,
                [&] { return process->access()->FlushWrites(range); },
                [](const absl::Status&) {})
            .calls;
  }
  EXPECT_EQ(calls[1], calls[0] - 1);
}

TEST(FlushWritesTest, ADeviceThatCannotSaysSo) {
  FakeProcess process;
  process.driver()->SetAttribute(abi::kGpuDirectRdmaFlushWritesOptions, 2);
  const auto range = process.OnDevice(std::string(100, 'x'));
  const absl::Status status = process.access()->FlushWrites(range);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_FALSE(process.access()->FlushWrites({nullptr, 1}).ok());
}

class PeersTest : public testing::Test {
 protected:
  absl::Status Copy(const std::string& bytes) {
    const auto from = process_.OnDevice(bytes, 0);
    const auto to = process_.OnDevice(std::string(bytes.size(), 0), 1);
    OpenDevice* const first = *process_.devices()->At(0);
    OpenDevice* const second = *process_.devices()->At(1);
    absl::Status copied = first->copier.OnDevice(
        second->device.get(),
        {DeviceCopy{reinterpret_cast<abi::Address>(from.data()),
                    reinterpret_cast<abi::Address>(to.data()), bytes.size()}},
        {});
    if (copied.ok()) {
      EXPECT_EQ(process_.Read(to.data(), to.size()), bytes);
    }
    return copied;
  }

  FakeProcess process_;
};

TEST_F(PeersTest, ADeviceReachesAnotherBeforeItsFirstCopyThere) {
  EXPECT_TRUE(Copy("one").ok());
  EXPECT_TRUE(process_.driver()->Reaches(0, 1));
  EXPECT_FALSE(process_.driver()->Reaches(1, 0));
  EXPECT_TRUE(Copy("two").ok());
  EXPECT_EQ(process_.driver()->CallsOf("CtxEnablePeerAccess"), 1);
}

TEST_F(PeersTest, ThatTheProgramHasSeenToItIsFine) {
  Device* const first = (*process_.devices()->At(0))->device.get();
  Device* const second = (*process_.devices()->At(1))->device.get();
  {
    const auto entered = first->Enter();
    ASSERT_EQ(process_.driver()->CtxEnablePeerAccess(second->context(), 0),
              abi::kSuccess);
  }
  EXPECT_TRUE(Copy("one").ok());
}

TEST_F(PeersTest, WithoutThemTheDriverCopiesAllTheSame) {
  process_.driver()->RefusePeers();
  EXPECT_TRUE(Copy("one").ok());
  EXPECT_EQ(process_.driver()->CallsOf("CtxEnablePeerAccess"), 0);
}

TEST_F(PeersTest, ACopyWithinADeviceAsksForNone) {
  const auto from = process_.OnDevice("x");
  OpenDevice* const open = *process_.devices()->At(0);
  const auto at = reinterpret_cast<abi::Address>(from.data());
  EXPECT_TRUE(
      open->copier.OnDevice(open->device.get(), {DeviceCopy{at, at, 1}}, {})
          .ok());
  EXPECT_EQ(process_.driver()->CallsOf("DeviceCanAccessPeer"), 0);
}

}  // namespace
}  // namespace device
}  // namespace penstock
