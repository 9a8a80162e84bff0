// Tests messages with several parts, which are sent through windows from
// registered memory. Each part must be read in place, and the bytes must arrive
// unchanged. Run "with windows" (tests/vm/windows.h).

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/allocator.h"
#include "penstock/penstock.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/verbs/rig.h"
#include "tests/e2e/verbs/traffic.h"

namespace penstock::e2e {
namespace {

constexpr size_t kLeast = 64 * 1024;  // the minimum for a separate part
// The maximum number of parts of one message that are sent in place: the number
// of windows, minus one for copied bytes.
constexpr int kInPlace = 32 - 1;

// The counters of DescribePaths for the client's device.
struct Registrations {
  explicit Registrations(const PathReport& report) {
    const size_t at = report.detail.find("registrations: ");
    if (at == std::string::npos) return;
    sscanf(report.detail.c_str() + at, "registrations: %d hits, %d misses",
           &hits, &misses);
  }
  int hits = 0;
  int misses = 0;
};

void KeepNothing(void*) {}

// Returns a slice of memory that outlives all calls.
grpc::Slice SliceOf(char* data, size_t size) {
  return grpc::Slice(data, size, &KeepNothing);
}

class VerbsPartsTest : public VerbsRig {
 protected:
  void SetUp() override {
    VerbsRig::SetUp();
    if (IsSkipped()) return;
    Serve(
        [this](grpc::ServerBuilder* builder) {
          builder->RegisterCallbackGenericService(&service_);
        },
        OnlyVerbsAt("rxe1"));
    channel_ = Connect(OnlyVerbsAt("rxe0"));
    ExpectEchoed({grpc::Slice("connects")});
  }
  ~VerbsPartsTest() override { StopServing(); }

  // Echoes a message made of the slices, `times` times in one stream.
  void ExpectEchoed(const std::vector<grpc::Slice>& slices, int times = 1) {
    const grpc::ByteBuffer message(slices.data(), slices.size());
    const std::string bytes = ToBytes(message);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    RawStream stream(channel_, &context);
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(stream.Write(message));
      EXPECT_TRUE(stream.Read().value_or("nothing") == bytes)
          << "message " << i;
    }
    stream.WritesDone();
    const grpc::Status status = stream.Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  Registrations registrations() {
    const PathReport report = PathOf(channel_.get());
    EXPECT_EQ(report.path, "verbs") << report;
    return Registrations(report);
  }

  RawEchoService service_;
  std::shared_ptr<grpc::Channel> channel_;
  ErrorTap log_;
};

// The program's memory. The test fills it again for each message.
struct Region {
  explicit Region(size_t size) : bytes(size) {}
  void Fill(unsigned seed) {
    const std::string pattern = Pattern(bytes.size(), seed);
    std::memcpy(bytes.data(), pattern.data(), pattern.size());
  }
  std::vector<char> bytes;
};

TEST_F(VerbsPartsTest, LargestPartsOfDeclaredMemoryAreReadWhereTheyLie) {
  constexpr int kParts = 40;
  Region region(kParts * (kLeast + 4096));
  const auto declared =
      RegisterMemory(region.bytes.data(), region.bytes.size());
  ASSERT_NE(declared, nullptr);
  Registrations before = registrations();
  for (int round = 0; round < 4; ++round) {
    region.Fill(round);
    std::vector<grpc::Slice> slices;
    size_t at = 0;
    for (int i = 0; i < kParts; ++i) {
      const size_t size = kLeast + 100 * i;
      slices.push_back(SliceOf(region.bytes.data() + at, size));
      at += size;
    }
    ExpectEchoed(slices);
    const Registrations now = registrations();
    EXPECT_EQ(now.misses, 1) << "the region, as a whole";
    // Expects two lookups for each part in place, and one for each other part.
    // The first lookup finds nothing.
    EXPECT_GE(now.hits - before.hits,
              round == 0 ? kInPlace - 1 : kParts + kInPlace)
        << "round " << round;
    before = now;
  }
}

TEST_F(VerbsPartsTest, PartsAmongSmallPiecesOfOtherMemoryArriveRight) {
  Region region(20 * 2 * kLeast);
  const auto declared =
      RegisterMemory(region.bytes.data(), region.bytes.size());
  ASSERT_NE(declared, nullptr);
  for (size_t parts : {1, 2, 5, 20}) {
    region.Fill(parts);
    std::vector<grpc::Slice> slices;
    for (size_t i = 0; i < parts; ++i) {
      slices.push_back(grpc::Slice(Pattern(1 + 997 * i, i)));
      slices.push_back(
          SliceOf(region.bytes.data() + i * 2 * kLeast + i, kLeast + 1000 * i));
      slices.push_back(SliceOf(region.bytes.data() + 7 * i, 10 * i + 1));
    }
    ExpectEchoed(slices, 3);
  }
  EXPECT_EQ(registrations().misses, 1);
}

// Tests parts of the pool, whose memory is registered like a program's declared
// memory.
TEST_F(VerbsPartsTest, PartsOfThePoolArriveRight) {
  std::vector<Allocator::Buffer> buffers;
  std::vector<grpc::Slice> slices;
  for (unsigned i = 0; i < 8; ++i) {
    buffers.push_back(Allocator::Allocate(2 * kLeast + 1000 * i));
    ASSERT_TRUE(buffers[i].is_pooled());
    const std::string bytes = Pattern(buffers[i].size(), i);
    std::memcpy(buffers[i].data(), bytes.data(), bytes.size());
    slices.push_back(buffers[i].ToSlice());
  }
  const Registrations before = registrations();
  ExpectEchoed(slices, 3);
  const Registrations now = registrations();
  EXPECT_LE(now.misses, before.misses + 1);
  EXPECT_GE(now.hits, before.hits + 3 * 8 - 1);
}

// Tests undeclared memory, which is registered only during the send.
TEST_F(VerbsPartsTest, LargePartsOfOtherMemoryArriveRight) {
  Region region(4 * 300 * 1000);
  region.Fill(1);
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < 4; ++i) {
    slices.push_back(SliceOf(region.bytes.data() + i * 300 * 1000, 300 * 1000));
  }
  const Registrations before = registrations();
  ExpectEchoed(slices, 2);
  EXPECT_GE(registrations().misses, before.misses + 2 * 4);
}

TEST_F(VerbsPartsTest, MemoryThatIsReplacedAndDeclaredAnewIsNotSentStale) {
  constexpr size_t kBytes = 4 * kLeast;
  void* where = nullptr;
  for (unsigned round = 0; round < 5; ++round) {
    void* const memory = mmap(
        where, kBytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    where = memory;
    char* const data = static_cast<char*>(memory);
    const std::string bytes = Pattern(kBytes, round);
    std::memcpy(data, bytes.data(), bytes.size());
    auto declared = RegisterMemory(data, kBytes);
    ASSERT_NE(declared, nullptr);
    std::vector<grpc::Slice> slices;
    for (size_t i = 0; i < 4; ++i) {
      slices.push_back(SliceOf(data + i * kLeast, kLeast));
    }
    ExpectEchoed(slices, 2);
    EXPECT_EQ(registrations().misses, static_cast<int>(round) + 1);
    declared.reset();
    munmap(memory, kBytes);
  }
}

// Tests bindings, messages and reads in both directions, all in flight at once.
TEST_F(VerbsPartsTest, ManyStreamsAtOnceArriveRight) {
  constexpr int kThreads = 4;
  Region region(kThreads * 8 * kLeast);
  region.Fill(1);
  const auto declared =
      RegisterMemory(region.bytes.data(), region.bytes.size());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &region] {
      std::vector<grpc::Slice> slices;
      for (int i = 0; i < 8; ++i) {
        slices.push_back(
            SliceOf(region.bytes.data() + (t * 8 + i) * kLeast, kLeast));
      }
      ExpectEchoed(slices, 10);
      ExpectEchoed({grpc::Slice(Pattern(100, t))}, 50);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(PathOf(channel_.get()).path, "verbs") << PathOf(channel_.get());
  EXPECT_EQ(log_.Text().find("lost"), std::string::npos) << log_.Text();
}

}  // namespace
}  // namespace penstock::e2e
