// Tests fabric::tcp::Endpoint with a hostile stream in arbitrary parts.
//
// The input is the number of parts, their sizes, and the stream.

#include <map>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/fabric/tcp/framing.h"

namespace penstock {
namespace fuzz {
namespace {

using fabric::tcp::UnitHeader;
using fabric::tcp::UnitType;

// The sizes of the reads in progress, by cookie.
constexpr size_t kReadSizes[] = {100, 5000};
constexpr size_t kExposedBytes = 300;

// Completes each write when asked.
class Stream : public fabric::tcp::ByteStream {
 public:
  void Write(std::vector<memory::Bytes> pieces) override {
    Require(!writing, "one write at a time");
    writing = true;
    for (const memory::Bytes& piece : pieces) {
      Require(piece.size > 0, "no empty piece is written");
      written.append(reinterpret_cast<const char*>(piece.data), piece.size);
    }
  }

  bool writing = false;
  std::string written;
};

// Records the events.
class Events : public fabric::EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    Add(absl::StrCat("packet ", AsText(packet)));
  }
  void OnWritable() override {}
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    Require(++reads_done[cookie] == 1, "a read ends once");
    Add(absl::StrCat("read ", cookie, status.ok() ? " ok" : " failed"));
  }
  void OnDoorbell() override { Add("doorbell"); }
  void OnBroken(const absl::Status&) override {
    Add("broken");
    broken = true;
  }

  std::vector<std::string> lines;
  std::map<uint64_t, int> reads_done;
  bool broken = false;

 private:
  void Add(std::string line) {
    Require(!broken, "nothing comes after the end");
    lines.push_back(std::move(line));
  }
};

struct Outcome {
  std::vector<std::string> lines;
  std::vector<std::string> blocks;  // the results of reads
};

class FedEndpoint {
 public:
  FedEndpoint() : endpoint_(&stream_) {
    endpoint_.Start(&events_);
    const auto exposed = std::make_shared<std::string>(kExposedBytes, 'e');
    const memory::Bytes bytes{AsBytes(*exposed).data(), exposed->size(),
                              exposed};
    (void)endpoint_.Expose(memory::Payload(bytes), /*max_parts=*/1);
    for (size_t size : kReadSizes) {
      blocks_.emplace_back(size, '\0');
      endpoint_.Read({1, 0, size}, 0,
                     {reinterpret_cast<uint8_t*>(&blocks_.back()[0]), size},
                     blocks_.size());
    }
  }

  void Feed(absl::Span<const uint8_t> bytes) {
    endpoint_.OnBytes(bytes);
    while (stream_.writing) {
      stream_.writing = false;
      endpoint_.OnWritten();
    }
  }

  Outcome End() {
    endpoint_.Break(absl::UnavailableError("the end"));
    Require(events_.broken, "the end of the stream is told");
    Require(events_.reads_done.size() == blocks_.size(), "every read ends");
    return {events_.lines, blocks_};
  }

 private:
  Stream stream_;
  Events events_;
  std::vector<std::string> blocks_;
  fabric::tcp::Endpoint endpoint_;
};

Outcome FeedParts(absl::Span<const uint8_t> bytes,
                  absl::Span<const uint8_t> cuts) {
  FedEndpoint endpoint;
  for (size_t i = 0; !bytes.empty(); ++i) {
    const size_t size = cuts.empty() ? 1 : 1 + cuts[i % cuts.size()];
    const absl::Span<const uint8_t> part = bytes.subspan(0, size);
    endpoint.Feed(part);
    bytes.remove_prefix(part.size());
  }
  return endpoint.End();
}

void CheckHeader(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < fabric::tcp::kUnitHeaderBytes) return;
  const auto header = fabric::tcp::ParseUnitHeader(bytes.data());
  if (!header.ok()) return;
  std::string again;
  fabric::tcp::AppendUnitHeader(*header, &again);
  Require(again == AsText(bytes.first(again.size())),
          "a header is encoded to the very bytes that it came from");
}

std::string Unit(UnitType type, uint64_t cookie, const std::string& body) {
  std::string bytes;
  fabric::tcp::AppendUnitHeader(
      UnitHeader{static_cast<uint32_t>(body.size()), type, cookie}, &bytes);
  return bytes + body;
}

std::string Read(uint64_t key, uint64_t offset, uint32_t length) {
  std::string body;
  fabric::tcp::AppendReadRequest({key, offset, length}, &body);
  return Unit(UnitType::kRead, 1, body);
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string cuts("\3\0\x0e\x80", 4);
  const std::string small = Unit(UnitType::kPacket, 0, "hello") +
                            Unit(UnitType::kDoorbell, 0, "") +
                            Unit(UnitType::kPacket, 0, "");
  const std::string reads = Read(1, 0, kExposedBytes) + Read(1, 299, 1) +
                            Read(1, 300, 1) + Read(2, 0, 1) + Read(1, ~0ull, 2);
  const std::string data =
      Unit(UnitType::kReadData, 2, std::string(5000, 'd')) +
      Unit(UnitType::kReadError, 1, "");
  return {cuts + small + reads + data, cuts + data + small, cuts + reads,
          cuts + Unit(UnitType::kReadData, 1, std::string(100, 'd')) + small,
          cuts + Unit(UnitType::kPacket, 0, std::string(65536, 'm'))};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::fuzz;
  Input input(data, size);
  const absl::Span<const uint8_t> cuts =
      input.Bytes(input.Number<uint8_t>() % 8);
  const absl::Span<const uint8_t> bytes = input.Rest();
  CheckHeader(bytes);
  FedEndpoint whole;
  whole.Feed(bytes);
  const Outcome expected = whole.End();
  const Outcome parts = FeedParts(bytes, cuts);
  Require(parts.lines == expected.lines,
          "the same happens however the stream is cut");
  return 0;
}
