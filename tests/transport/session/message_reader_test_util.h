// A message reader over fake links, whose peer exposes messages explicitly.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_MESSAGE_READER_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_MESSAGE_READER_TEST_UTIL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/link.h"
#include "transport/memory/bytes.h"
#include "transport/session/message_reader.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {

// A fixture whose reader is side B of both links. The reader may read 10,000
// bytes at a time, and fake pieces have 4,096 bytes. Records "message 7 of 1,
// budget 5000: m", "failed 7 of 1: why", "released 7".
class MessageReaderTest : public ::testing::Test,
                          public MessageReader::Owner,
                          public fabric::EndpointEvents {
 protected:
  // The epoch of the fast path.
  static constexpr uint32_t kEpoch = 3;

  explicit MessageReaderTest(const LinkOptions& fast = LinkOptions(),
                             bool load_in_place = true)
      : fast_(fast) {
    for (Link* link : {&lifeline_, &fast_}) {
      owners_.push_back(link->Take(Side::kA));
      readers_.push_back(link->Take(Side::kB));
      readers_.back()->Start(this);
    }
    reader_ = std::make_unique<MessageReader>(readers_[0].get(), 10000,
                                              load_in_place, this);
    reader_->UseFastPath(readers_[1].get(), kEpoch);
  }

  void OnMessageRead(uint32_t stream, uint64_t id,
                     absl::StatusOr<memory::Payload> message,
                     uint64_t budgeted) override {
    if (!message.ok()) {
      lines_.push_back(absl::StrCat("failed ", id, " of ", stream, ": ",
                                    message.status().message()));
      return;
    }
    lines_.push_back(absl::StrCat("message ", id, " of ", stream, ", budget ",
                                  budgeted, ": ", Brief(ToString(*message))));
    if (keeps_) kept_.push_back(*std::move(message));
  }
  void OnRegionReleased(uint32_t, uint64_t id, bool) override {
    lines_.push_back(absl::StrCat("released ", id));
  }

  void OnPacket(absl::Span<const uint8_t>) override {}
  void OnWritable() override {}
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    reader_->OnReadDone(cookie, status);
  }
  void OnDoorbell() override {}
  void OnBroken(const absl::Status&) override { reader_->LoseFastPath(); }

  // Returns the peer's announcement of Letters(size, id), which the peer
  // exposes on both links.
  wire::Announce Expose(uint64_t id, size_t size) {
    return Expose(id, ToPayload(Letters(size, id)), 1);
  }
  wire::Announce Expose(uint64_t id, const memory::Payload& payload,
                        size_t max_parts) {
    wire::Announce announce;
    announce.id = id;
    announce.length = payload.size();
    for (bool on_lifeline : {false, true}) {
      const fabric::Exposure exposure =
          owners_[on_lifeline ? 0 : 1]->Expose(payload, max_parts).value();
      announce.regions.push_back(
          Announced(on_lifeline ? 0 : kEpoch, exposure.region));
    }
    return announce;
  }
  void Begin(uint32_t stream, const wire::Announce& announce) {
    const absl::Status status = reader_->Begin(stream, announce);
    EXPECT_TRUE(status.ok()) << status;
  }
  static std::string Read(uint64_t id, uint32_t stream, size_t size) {
    return absl::StrCat("message ", id, " of ", stream, ", budget ", size, ": ",
                        Brief(Letters(size, id)));
  }
  void Run() {
    while (lifeline_.Step() || fast_.Step()) {
    }
  }
  Lines Take() { return std::exchange(lines_, Lines()); }
  uint64_t lifeline_reads() { return lifeline_.counters(Side::kB).reads; }
  uint64_t fast_reads() { return fast_.counters(Side::kB).reads; }

  bool keeps_ = false;
  Lines lines_;
  std::vector<memory::Payload> kept_;
  Link lifeline_{LifelineOptions()};
  Link fast_;
  std::vector<std::unique_ptr<fabric::Endpoint>> owners_;
  std::vector<std::unique_ptr<fabric::Endpoint>> readers_;
  std::unique_ptr<MessageReader> reader_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_MESSAGE_READER_TEST_UTIL_H_
