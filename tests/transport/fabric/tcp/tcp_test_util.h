// One endpoint of the tcp fabric, with its events as lines and its stream as
// units.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_TCP_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_TCP_TEST_UTIL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/pipe.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {

using Lines = std::vector<std::string>;

// Records events in order: "packet hi", "read 3 OK".
class Recorder : public EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    lines_.push_back("packet " + std::string(packet.begin(), packet.end()));
  }
  void OnWritable() override { lines_.push_back("writable"); }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    lines_.push_back(
        absl::StrCat("read ", cookie, " ", status.ok() ? "OK" : "failed"));
  }
  void OnDoorbell() override {
    lines_.push_back("doorbell");
    if (at_doorbell) at_doorbell();
  }
  void OnBroken(const absl::Status& cause) override {
    lines_.push_back("broken");
    cause_ = cause;
  }

  Lines Take() { return std::exchange(lines_, Lines()); }
  // Returns the cause of the break, if there was one.
  const absl::Status& cause() const { return cause_; }

  std::function<void()> at_doorbell;

 private:
  Lines lines_;
  absl::Status cause_;
};

// Returns three bytes for "01 02ff". Ignores spaces.
inline std::string FromHex(absl::string_view hex) {
  return absl::HexStringToBytes(absl::StrReplaceAll(hex, {{" ", ""}}));
}
inline std::string ToHex(absl::string_view bytes) {
  return absl::BytesToHexString(bytes);
}
inline absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string MakeUnit(UnitType type, uint64_t cookie,
                            absl::string_view body) {
  std::string unit;
  AppendUnitHeader({static_cast<uint32_t>(body.size()), type, cookie}, &unit);
  return absl::StrCat(unit, body);
}

inline std::string MakeRead(uint64_t cookie, const ReadRequest& request) {
  std::string body;
  AppendReadRequest(request, &body);
  return MakeUnit(UnitType::kRead, cookie, body);
}

struct Unit {
  UnitHeader header;
  std::string body;
};

// Splits bytes into units. Fails the test if the last unit is incomplete.
inline std::vector<Unit> SplitUnits(absl::string_view bytes) {
  std::vector<Unit> units;
  while (bytes.size() >= kUnitHeaderBytes) {
    const auto header = ParseUnitHeader(AsSpan(bytes).data());
    EXPECT_TRUE(header.ok()) << header.status();
    if (!header.ok()) return units;
    bytes.remove_prefix(kUnitHeaderBytes);
    units.push_back({*header, std::string(bytes.substr(0, header->length))});
    bytes.remove_prefix(units.back().body.size());
    EXPECT_EQ(units.back().body.size(), header->length);
  }
  EXPECT_TRUE(bytes.empty()) << bytes.size() << " bytes too many";
  return units;
}

class TcpEndpointTest : public ::testing::Test {
 protected:
  TcpEndpointTest() { NewEndpoint(); }

  void NewEndpoint() {
    endpoint_ = nullptr;
    pipe_ = Pipe();
    events_ = Recorder();
    endpoint_ = absl::make_unique<Endpoint>(&pipe_);
    endpoint_->Start(&events_);
  }
  // Delivers bytes in memory of exactly their size, so that a sanitizer detects
  // out-of-bounds accesses.
  void Receive(absl::string_view bytes) {
    std::vector<uint8_t> copy(bytes.size());
    bytes.copy(reinterpret_cast<char*>(copy.data()), bytes.size());
    endpoint_->OnBytes(copy);
  }
  bool Send(absl::string_view packet) {
    return endpoint_->Send(AsSpan(packet));
  }
  // Completes the current write. Returns its bytes.
  std::string TakeWrite() {
    EXPECT_TRUE(pipe_.writing());
    std::string bytes = pipe_.Take();
    pipe_.Finish();
    endpoint_->OnWritten();
    return bytes;
  }
  // Completes writes until there are no more. Returns their bytes.
  std::string TakeWrites() {
    std::string bytes;
    while (pipe_.writing()) bytes += TakeWrite();
    return bytes;
  }
  // Starts a write. Later writes wait until TakeWrite().
  void BeginWrite() {
    ASSERT_TRUE(Send("first"));
    ASSERT_TRUE(pipe_.writing());
  }
  RemotePart Expose(absl::string_view bytes) {
    memory::Block block = memory::AllocateBlock(bytes.size()).value();
    bytes.copy(reinterpret_cast<char*>(block.data.get()), bytes.size());
    return Expose(memory::Payload(block.AsBytes()));
  }
  RemotePart Expose(const memory::Payload& payload) {
    return endpoint_->Expose(payload, /*max_parts=*/1).value().region[0];
  }
  void Read(std::string* into, uint64_t cookie) {
    endpoint_->Read(RemotePart{1, 0, into->size()}, 0,
                    {reinterpret_cast<uint8_t*>(&(*into)[0]), into->size()},
                    cookie);
  }

  Pipe pipe_;
  Recorder events_;
  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_TCP_TEST_UTIL_H_
