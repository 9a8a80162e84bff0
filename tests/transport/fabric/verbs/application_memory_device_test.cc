// Tests memory of the program on a real libibverbs, through windows: which
// parts stay registered, how many parts an exposure has, and if a peer reads
// the current bytes. application_memory_test.cc and parts_test.cc test the same
// on simulated devices, where they can observe more.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/fabric/verbs/mapping.h"
#include "tests/vm/vm_test.h"
#include "tests/vm/windows.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using memory::StableMemory;

constexpr size_t kMiB = 1 << 20;
constexpr size_t kLeast = 64 * 1024;  // smallest size of a separate part
constexpr absl::Duration kPatience = absl::Seconds(10);

class ApplicationMemoryDeviceTest : public VmTest {
 protected:
  void SetUp() override {
    VmTest::SetUp();
    if (!IsSkipped()) Open({});
  }

  void Open(Options options) {
    server_.endpoint.reset();
    client_.endpoint.reset();
    options.device = "rxe1";
    listening_ = std::make_unique<VerbsFabric>(options);
    options.device = "rxe0";
    connecting_ = std::make_unique<VerbsFabric>(options);
    absl::StatusOr<EndpointPair> pair =
        ConnectPair(listening_.get(), connecting_.get());
    ASSERT_TRUE(pair.ok()) << pair.status();
    server_.endpoint = std::move(pair->first);
    client_.endpoint = std::move(pair->second);
    server_->Start(&server_.events);
    client_->Start(&client_.events);
    ASSERT_TRUE(UsesWindowsAsWanted(server_->Describe()))
        << server_->Describe();
  }

  bool PollUntil(const std::function<bool()>& condition) {
    const absl::Time end = absl::Now() + kPatience;
    while (!condition()) {
      if (absl::Now() > end) return false;
      server_->Poll();
      client_->Poll();
      absl::SleepFor(absl::Microseconds(100));
    }
    return true;
  }

  std::string ReadAll(const RemoteRegion& region) {
    std::string all;
    for (const RemotePart& part : region) all += ReadPart(part);
    return all;
  }
  std::string ReadPart(const RemotePart& part) {
    std::string all(part.length, '.');
    const size_t chunk = client_->capabilities().read_chunk_bytes;
    for (size_t at = 0; at < all.size(); at += chunk) {
      const size_t size = std::min(chunk, all.size() - at);
      const uint64_t cookie = ++cookie_;
      client_->Read(part, at, {reinterpret_cast<uint8_t*>(&all[at]), size},
                    cookie);
      const auto& reads = client_.events.reads;
      EXPECT_TRUE(PollUntil([&] { return reads.count(cookie) > 0; }));
      if (!client_.events.Succeeded(cookie)) return "";
    }
    return all;
  }

  Exposure Expose(const memory::Payload& payload) {
    absl::StatusOr<Exposure> exposure = server_->Expose(payload, 512);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    return exposure.value_or(Exposure{RemoteRegion(1), {}});
  }
  // Exposes the bytes in place, and withdraws them afterwards. Returns the
  // bytes that the client reads.
  std::string Pass(const memory::Bytes& bytes) {
    const std::weak_ptr<const void> owner = bytes.owner;
    Exposure exposure = Expose(memory::Payload(bytes));
    EXPECT_EQ(exposure.stable.pieces()[0].data, bytes.data);
    std::string got = ReadAll(exposure.region);
    Withdraw(std::exchange(exposure, Exposure()).region);
    return got;
  }
  void Withdraw(const RemoteRegion& region) {
    server_->Withdraw(region);
    // Sends a packet. Once the peer has the packet, all earlier operations have
    // ended.
    const size_t before = client_.events.packets.size();
    EXPECT_TRUE(Ends::Send(server_, "withdrawn"));
    EXPECT_TRUE(
        PollUntil([&] { return client_.events.packets.size() > before; }));
  }

  void ExpectCounters(int hits, int misses, int evictions, int mib) {
    const std::string wanted =
        absl::StrCat("registrations: ", hits, " hits, ", misses, " misses, ",
                     evictions, " evictions, ", mib, " MiB kept");
    EXPECT_NE(server_->Describe().find(wanted), std::string::npos)
        << server_->Describe() << ", not " << wanted;
  }
  static std::unique_ptr<StableMemory> Declare(const Mapping& memory) {
    return StableMemory::Declare(memory.data(), memory.size()).value();
  }
  static std::string All(char fill, size_t size = kMiB) {
    return std::string(size, fill);
  }

  std::unique_ptr<VerbsFabric> listening_;
  std::unique_ptr<VerbsFabric> connecting_;
  End server_;
  End client_;
  uint64_t cookie_ = 0;
};

TEST_F(ApplicationMemoryDeviceTest, DeclaredMemoryIsRegisteredOnce) {
  Mapping memory(kMiB);
  const auto declared = Declare(memory);
  for (int i = 0; i < 5; ++i) {
    memory.Fill(static_cast<char>('a' + i));
    EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All(static_cast<char>('a' + i)));
  }
  ExpectCounters(/*hits=*/4, /*misses=*/1, /*evictions=*/0, /*mib=*/1);
}

TEST_F(ApplicationMemoryDeviceTest, DeclaredAnewIsNeverSentStale) {
  Mapping memory(kMiB);
  memory.Fill('a');
  auto declared = Declare(memory);
  EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All('a'));
  declared.reset();
  ExpectCounters(0, 1, 0, /*mib=*/0);
  memory.Replace('b');
  EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All('b')) << "not declared";
  declared = Declare(memory);
  EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All('b'));
  EXPECT_TRUE(Pass(memory.Part(1000, 20000)) == All('b', 20000));
}

// Replaces pages while the peer still reads the old pages. The peer must get
// the old bytes, and the next message the new bytes.
TEST_F(ApplicationMemoryDeviceTest, DeclaredAnewWhileInUseIsNotSentStale) {
  Mapping memory(kMiB);
  memory.Fill('a');
  auto declared = Declare(memory);
  const Exposure before = Expose(memory.Slice());
  declared.reset();
  memory.Replace('b');
  declared = Declare(memory);
  EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All('b'));
  EXPECT_TRUE(ReadAll(before.region) == All('a'));
}

// Replaces pages of declared memory, which a program must not do. The peer gets
// old bytes. This shows that the other tests would detect old bytes.
TEST_F(ApplicationMemoryDeviceTest, BrokenPromiseSendsOldBytes) {
  Mapping memory(kMiB);
  memory.Fill('a');
  const auto declared = Declare(memory);
  EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All('a'));
  memory.Replace('b');
  EXPECT_TRUE(Pass(memory.Part(0, kMiB)) == All('a'));
}

TEST_F(ApplicationMemoryDeviceTest, LeastRecentlyUsedIsEvicted) {
  Options options;
  options.cache_bytes = 2 * kMiB;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  Mapping first(kMiB), second(kMiB), third(kMiB);
  const auto promises =
      std::make_tuple(Declare(first), Declare(second), Declare(third));
  for (int round = 0; round < 2; ++round) {
    char fill = static_cast<char>('a' + 3 * round);
    for (Mapping* memory : {&first, &second, &third}) {
      memory->Fill(fill);
      EXPECT_TRUE(Pass(memory->Part(0, kMiB)) == All(fill++));
    }
  }
  ExpectCounters(/*hits=*/0, /*misses=*/6, /*evictions=*/4, /*mib=*/2);
  third.Fill('z');
  EXPECT_TRUE(Pass(third.Part(0, kMiB)) == All('z'));
  ExpectCounters(/*hits=*/1, /*misses=*/6, /*evictions=*/4, /*mib=*/2);
}

// Exposes more pieces than an exposure has windows. Each of the 32 largest
// parts has its own key, and the parts between them are copied.
TEST_F(ApplicationMemoryDeviceTest, ManyPartsLieWhereTheyWere) {
  constexpr int kParts = 15;
  Mapping memory(kParts * kLeast);
  const auto declared = Declare(memory);
  for (int round = 0; round < 10; ++round) {
    memory::Payload payload;
    std::string text;
    for (int i = 0; i < kParts; ++i) {
      const char fill = static_cast<char>('a' + (i + round) % 26);
      std::memset(memory.data() + i * kLeast, fill, kLeast);
      payload.Append(memory.Part(i * kLeast, kLeast));
      text += All(fill, kLeast) + "between";
      payload.Append(Ends::PayloadOf("between").pieces()[0]);
    }
    const Exposure exposure = Expose(payload);
    ASSERT_EQ(exposure.region.size(), 2u * kParts);
    for (int i = 0; i < kParts; ++i) {
      EXPECT_EQ(exposure.stable.pieces()[2 * i].data,
                memory.data() + i * kLeast);
      for (int k = 0; k < i; ++k) {
        EXPECT_NE(exposure.region[2 * i].key, exposure.region[2 * k].key);
      }
    }
    EXPECT_TRUE(ReadAll(exposure.region) == text);
    Withdraw(exposure.region);
  }
  EXPECT_TRUE(client_.events.broken.empty());
}

TEST_F(ApplicationMemoryDeviceTest, EachKeyIsDeadAfterTheWithdrawal) {
  for (size_t part = 0; part < 3; ++part) {
    Mapping memory(3 * kLeast);
    const auto declared = Declare(memory);
    memory::Payload payload;
    for (int i = 0; i < 3; ++i) payload.Append(memory.Part(i * kLeast, kLeast));
    const RemoteRegion region = Expose(payload).region;
    ASSERT_EQ(region.size(), 3u);
    EXPECT_EQ(ReadAll(region).size(), 3 * kLeast);
    Withdraw(region);
    EXPECT_EQ(ReadPart(region[part]), "") << "part " << part;
    client_.events = Recorder();
    server_.events = Recorder();
    ASSERT_NO_FATAL_FAILURE(Open({}));
  }
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
