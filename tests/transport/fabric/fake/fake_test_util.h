// A fake link with an event recorder at each end.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_FAKE_FAKE_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_FAKE_FAKE_TEST_UTIL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/link.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace fake {

// Records events in order: "packet hi", "read 3 OK".
class Recorder : public EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    Add("packet " + std::string(packet.begin(), packet.end()));
  }
  void OnWritable() override { Add("writable"); }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    Add(absl::StrCat("read ", cookie, " ", status.ok() ? "OK" : "failed"));
  }
  void OnDoorbell() override { Add("doorbell"); }
  void OnBroken(const absl::Status& cause) override { Add("broken"); }

  std::vector<std::string> Take() { return std::move(lines_); }

  std::function<void()> on_event;

 private:
  void Add(std::string line) {
    lines_.push_back(std::move(line));
    if (on_event) on_event();
  }
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

class FakeLinkTest : public ::testing::Test {
 protected:
  explicit FakeLinkTest(const LinkOptions& options = LinkOptions())
      : link_(options), a_(link_.Take(Side::kA)), b_(link_.Take(Side::kB)) {
    a_->Start(&at_a_);
    b_->Start(&at_b_);
  }

  static bool Send(Endpoint* from, absl::string_view text) {
    return from->Send(
        {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  // Returns "abcdef...", in two pieces.
  static memory::Payload Letters(size_t size) {
    memory::Payload payload;
    for (size_t at : {size_t{0}, size / 3}) {
      const size_t end = at == 0 ? size / 3 : size;
      memory::Block block = memory::AllocateBlock(end - at).value();
      for (size_t i = at; i < end; ++i) block.data.get()[i - at] = 'a' + i % 26;
      payload.Append(block.AsBytes());
    }
    return payload;
  }
  // Exposes letters at side A, in one part.
  absl::StatusOr<Exposure> ExposeLetters(size_t size) {
    return a_->Expose(Letters(size), /*max_parts=*/1);
  }
  RemotePart PartOfLetters(size_t size) {
    return ExposeLetters(size).value().region[0];
  }
  void Read(Endpoint* from, const RemotePart& part, uint64_t offset,
            std::string* into, uint64_t cookie) {
    from->Read(part, offset,
               {reinterpret_cast<uint8_t*>(&(*into)[0]), into->size()}, cookie);
  }

  Recorder at_a_;
  Recorder at_b_;
  Link link_;
  std::unique_ptr<Endpoint> a_;
  std::unique_ptr<Endpoint> b_;
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_FAKE_FAKE_TEST_UTIL_H_
