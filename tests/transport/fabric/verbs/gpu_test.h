// A fixture with two ends in a program with a GPU.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_GPU_TEST_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_GPU_TEST_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr size_t kGpuTestBytes = 300 * 1000;

inline std::string Text(size_t size, int seed = 0) {
  std::string text(size, '.');
  for (size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>((i * 31 + i / 251 + seed * 7) % 253);
  }
  return text;
}

inline memory::Payload Join(const std::vector<memory::Bytes>& pieces) {
  memory::Payload payload;
  for (const memory::Bytes& piece : pieces) payload.Append(piece);
  return payload;
}

class GpuTest : public testing::Test {
 protected:
  // Opens the device. With dmabuf, small memory is also sent in place.
  void Open(DeviceOptions device = {}, Options options = {},
            NetworkOptions network = {}) {
    options.gpu_alone_bytes = least_alone_;
    ends_.reset();
    ends_ = std::make_unique<Ends>(std::move(device), options, network);
    ASSERT_TRUE(ends_->Connect().ok());
  }
  End& server() { return ends_->server; }
  End& client() { return ends_->client; }
  bool ServerSays(const std::string& text) {
    return absl::StrContains(server()->Describe(), text);
  }
  DeviceOptions WithPeerMemory() {
    DeviceOptions device;
    device.has_dmabuf = false;
    device.peer_memory = [this](const void* address, size_t size) {
      return gpu_.Backing({static_cast<const uint8_t*>(address), size});
    };
    return device;
  }

  // Returns the server's message as the client has read it. Sets `in_place` to
  // the number of pieces that the message keeps in GPU memory.
  std::string Pass(const memory::Payload& payload, size_t* in_place = nullptr) {
    absl::StatusOr<Exposure> exposure = server()->Expose(payload, 100);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    if (!exposure.ok()) return "";
    if (in_place != nullptr) {
      *in_place = 0;
      for (const memory::Bytes& piece : exposure->stable.pieces()) {
        if (piece.device != nullptr) ++*in_place;
      }
    }
    const std::string got = ends_->ReadAll(&client(), exposure->region);
    server()->Withdraw(exposure->region);
    ends_->Exchange();
    return got;
  }
  void ExpectInPlace(int seed, int ordinal = 0) {
    const std::string text = Text(kGpuTestBytes, seed);
    size_t in_place = 0;
    EXPECT_EQ(Pass(memory::Payload(gpu_.Put(text, ordinal)), &in_place), text);
    EXPECT_EQ(in_place, 1u) << server()->Describe();
  }
  void ExpectStaged(int seed, int ordinal = 0) {
    const std::string text = Text(kGpuTestBytes, seed);
    size_t in_place = 0;
    EXPECT_EQ(Pass(memory::Payload(gpu_.Put(text, ordinal)), &in_place), text);
    EXPECT_EQ(in_place, 0u) << server()->Describe();
  }

  std::shared_ptr<const void> Prepare(const memory::Bytes& into) {
    return client()->PrepareToRead(
        {const_cast<uint8_t*>(into.data), into.size, &gpu_});
  }
  // Reads a region of the size of `into` to `into`, which must be prepared, and
  // expects the right bytes there.
  void ExpectLands(const memory::Bytes& into, int seed) {
    const std::string text = Text(into.size, seed);
    const Exposure exposure =
        server()->Expose(Ends::PayloadOf(text), 1).value();
    const size_t chunk = client()->capabilities().read_chunk_bytes;
    for (size_t at = 0; at < into.size; at += chunk) {
      const size_t size = std::min(chunk, into.size - at);
      client()->Read(exposure.region[0], at,
                     {const_cast<uint8_t*>(into.data) + at, size}, ++cookie_);
      ends_->Exchange();
      EXPECT_TRUE(client().events.Succeeded(cookie_));
    }
    EXPECT_TRUE(gpu_.Get(into.span()) == text);
    server()->Withdraw(exposure.region);
    ends_->Exchange();
  }

  memory::FakeDeviceAccess gpu_;
  std::unique_ptr<Ends> ends_;
  uint64_t least_alone_ = memory::kMinDeviceBytes;
  uint64_t cookie_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_GPU_TEST_H_
