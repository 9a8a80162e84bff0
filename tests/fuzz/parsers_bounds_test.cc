// Tests the cost of parsers outside the session, and of their consumers, for
// numbers of any size. All parsers share one time budget.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fuzz/bounds.h"
#include "tests/fuzz/input.h"
#include "transport/device/allocation_name.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/fabric/verbs/formats/address.h"
#include "transport/fabric/verbs/formats/credits.h"
#include "transport/fabric/verbs/formats/packet.h"
#include "transport/fabric/verbs/formats/private_data.h"
#include "transport/rpc/greeting.h"
#include "transport/rpc/head.h"

namespace penstock {
namespace fuzz {
namespace {

// Limits the memory of every parser. Error messages need some.
constexpr uint64_t kBudget = 16 * 1024;

// Passes `input` to `parse`, and holds the result while measuring the cost.
template <typename Parse>
void Feed(const std::string& input, const Parse& parse) {
  const Cost cost;
  const auto held = parse();
  (void)held;
  ASSERT_TRUE(cost.IsWithin(input.size(), kBudget))
      << testing::PrintToString(input.substr(0, 200));
}

// Returns at most `length` bytes, possibly fewer than announced.
std::string Some(uint64_t length) {
  return std::string(std::min<uint64_t>(length, 70000), 'x');
}

void GreetAtRandom(Random* random) {
  const auto length = random->Mostly<uint16_t>(random->Below(65));
  const std::string input =
      absl::StrCat("PSTKrpc?", random->Field<uint8_t>(),
                   random->Field<uint8_t>(), Number(length), Some(length));
  absl::string_view rest = input;
  Feed(input, [&] { return rpc::TakeGreeting(&rest); });
}

void AnswerAtRandom(Random* random) {
  const auto length = random->Mostly<uint16_t>(random->Below(513));
  const std::string input = absl::StrCat("PSTKrpc!", random->Field<uint8_t>(),
                                         Number(length), Some(length));
  absl::string_view rest = input;
  Feed(input, [&] { return rpc::TakeAnswer(&rest); });
}

void RequestAtRandom(Random* random) {
  const auto length = random->Mostly<uint8_t>(1);
  const std::string input =
      absl::StrCat(random->Field<uint64_t>(), Number(length),
                   random->OneIn(16) ? "" : Some(length),
                   std::string(random->Number(20), 'm'));
  Feed(input, [&] {
    bool is_stream = false;
    absl::StatusOr<rpc::Request> request = rpc::ParseRequest(input, &is_stream);
    if (!request.ok()) return request;
    EXPECT_LE(request->metadata.size(), rpc::kMaxMetadataBytes);
    EXPECT_TRUE(rpc::EncodeRequest(*request, is_stream).ok())
        << "what was parsed is sent";
    return request;
  });
}

void EndAtRandom(Random* random) {
  const auto length = random->Mostly<uint32_t>(random->Below(4001));
  std::string input =
      absl::StrCat(random->Field<uint32_t>(), Number(length), Some(length));
  for (uint64_t left = random->Below(20); left > 0; --left) {
    const auto url = random->Mostly<uint32_t>(random->Below(100));
    const auto value = random->Mostly<uint32_t>(random->Below(100));
    absl::StrAppend(&input, Number(url), Some(url), Number(value), Some(value));
  }
  Feed(input, [&] {
    absl::StatusOr<rpc::End> end = rpc::ParseEnd(input);
    if (!end.ok()) return end;
    EXPECT_LE(rpc::EncodeEnd(*end).size(), rpc::kMaxHeadBytes);
    return end;
  });
}

void NameAnAllocation(Random* random) {
  static const auto* const names = new absl::StatusOr<device::AllocationNames>(
      device::AllocationNames::Create());
  device::AllocationName name;
  name.size = random->Number(64);
  name.address = random->Number(64);
  name.id = random->Number(64);
  std::string input = (*names)->Encode(name);
  if (random->OneIn(8)) input.resize(random->Number(8));
  if (random->OneIn(8) && !input.empty()) {
    input[0] = static_cast<char>(random->Number(8));
  }
  Feed(input, [&] {
    auto decoded = (*names)->Decode(input);
    if (!decoded.ok()) return decoded;
    EXPECT_GT(decoded->name.size, 0u);
    EXPECT_LE(decoded->name.size, device::AllocationNames::kMaxSize);
    EXPECT_GE(decoded->name.address + decoded->name.size,
              decoded->name.address);
    return decoded;
  });
}

void SetUpShm(Random* random) {
  const auto length = random->Mostly<uint8_t>(random->Below(129));
  const std::string input = absl::StrCat(
      "PSHM", Number(random->Mostly<uint16_t>(5)),
      Number(random->Mostly<uint8_t>(1 + random->Below(7))), Number(length),
      Number(random->OneIn(2) ? random->Number(64) : uint64_t{256} << 10),
      random->Field<uint32_t>(), Some(length));
  Feed(input, [&] {
    auto message = fabric::shm::DecodeSetup(input);
    if (!message.ok()) return message;
    EXPECT_LE(message->size, fabric::shm::kMaxPassedDeviceBytes);
    return message;
  });
}

// Grants credits to a side with `receives` posted buffers. The peer may grant
// any number of credits.
void GrantCredits(Random* random, uint16_t receives) {
  fabric::verbs::Credits credits(/*receives=*/64, receives);
  uint32_t taken = 0;
  for (int i = 0; i < 8; ++i) {
    for (uint64_t n = random->Below(4); n > 0 && credits.MaySend(); --n) {
      (void)credits.TakeForSend();
      ++taken;
    }
    const std::string packet = absl::StrCat(
        Number(random->Mostly<uint8_t>(1 + random->Below(2))),
        Number(random->Mostly<uint8_t>(0)), random->Field<uint16_t>(),
        Number(random->Mostly<uint32_t>(0)));
    const auto header = fabric::verbs::ParseHeader(AsBytes(packet));
    if (!header.ok()) continue;
    credits.OnReceived();
    const bool granted = credits.OnGranted(header->credits).ok();
    ASSERT_EQ(granted, header->credits <= taken);
    if (granted) taken -= header->credits;
  }
}

void ConnectVerbs(Random* random) {
  const std::string input = absl::StrCat(
      "PVRB", Number(random->Mostly<uint16_t>(1)), random->Field<uint16_t>(),
      random->Field<uint16_t>(), Number(random->Mostly<uint16_t>(0)),
      Some(random->Number(8)));
  Feed(input, [&] { return fabric::verbs::ParseRequest(input); });
  Feed(input, [&] {
    auto terms = fabric::verbs::ParseAnswer(input);
    if (terms.ok()) GrantCredits(random, terms->receives);
    return terms;
  });
}

void OfferVerbs(Random* random) {
  std::string input;
  for (uint64_t left = random->Number(6); left > 0; --left) {
    absl::StrAppend(&input, random->Mostly<uint8_t>(10), ".0.0.1 ",
                    random->Mostly<uint64_t>(1 + random->Below(65535)), "\n");
  }
  Feed(input, [&] {
    auto offer = fabric::verbs::ParseOffer(input);
    if (!offer.ok()) return offer;
    EXPECT_LE(offer->size(), fabric::verbs::kMaxOffered);
    return offer;
  });
}

// Completes each write immediately.
class Stream : public fabric::tcp::ByteStream {
 public:
  void Write(std::vector<memory::Bytes> pieces) override {
    writing = true;
    for (const memory::Bytes& piece : pieces) written += piece.size;
  }

  bool writing = false;
  uint64_t written = 0;
};

class Events : public fabric::EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t>) override {}
  void OnWritable() override {}
  void OnReadDone(uint64_t, const absl::Status&) override { --reads; }
  void OnDoorbell() override {}
  void OnBroken(const absl::Status&) override { broken = true; }

  int reads = 0;  // in progress
  bool broken = false;
};

// An endpoint that exposes 300 bytes, and reads the regions that its peer
// announces.
class TcpVictim {
 public:
  TcpVictim() : exposed_(300, 'e'), endpoint_(&stream_) {
    endpoint_.Start(&events_);
    (void)endpoint_.Expose(
        memory::Payload({AsBytes(exposed_).data(), exposed_.size(), nullptr}),
        /*max_parts=*/1);
  }
  ~TcpVictim() {
    endpoint_.Break(absl::UnavailableError("the end"));
    EXPECT_EQ(events_.reads, 0) << "each read ends once";
  }

  bool broken() const { return events_.broken; }
  uint64_t written() const { return stream_.written; }

  void Read(const fabric::RemotePart& part, uint64_t offset) {
    ++events_.reads;
    endpoint_.Read(part, offset, absl::MakeSpan(into_), events_.reads);
    Write();
  }
  void Receive(const std::string& bytes) {
    endpoint_.OnBytes(AsBytes(bytes));
    Write();
  }

 private:
  void Write() {
    while (stream_.writing) {
      stream_.writing = false;
      endpoint_.OnWritten();
    }
  }

  const std::string exposed_;
  uint8_t into_[100];
  Stream stream_;
  Events events_;
  fabric::tcp::Endpoint endpoint_;
};

std::string AnyUnit(Random* random) {
  using fabric::tcp::UnitType;
  const auto type = random->Mostly<uint8_t>(1 + random->Below(7));
  uint32_t length = 0;
  if (type == static_cast<uint8_t>(UnitType::kPacket)) {
    length = random->Number(16);
  } else if (type == static_cast<uint8_t>(UnitType::kRead)) {
    length = fabric::tcp::kReadBodyBytes;
  } else if (type == static_cast<uint8_t>(UnitType::kReadData) ||
             type == static_cast<uint8_t>(UnitType::kPush)) {
    length = random->OneIn(2) ? 100 : random->Number(21);
  }
  length = random->Mostly(length);
  std::string body = Some(length);
  if (type == static_cast<uint8_t>(UnitType::kRead)) {
    body = absl::StrCat(
        Number(random->Mostly<uint64_t>(1)),
        Number(random->OneIn(2) ? random->Number(64) : random->Below(300)),
        Number(random->OneIn(2) ? random->Number(32) : random->Below(301)));
  }
  return absl::StrCat(
      Number(length), Number(type), std::string(3, '\0'),
      Number(random->OneIn(2) ? random->Number(64) : random->Below(4)), body);
}

void SpeakTcp(Random* random) {
  TcpVictim victim;
  for (int left = 20; left > 0 && !victim.broken(); --left) {
    const uint64_t written = victim.written();
    const std::string unit = AnyUnit(random);
    const fabric::RemotePart part = {random->Number(64), random->Number(64),
                                     random->Number(64)};
    Feed(unit, [&] {
      if (random->OneIn(2)) victim.Read(part, random->Number(64));
      victim.Receive(unit);
      return 0;
    });
    // Limits the answer: a read request of 36 bytes gets an answer of at most
    // 316 bytes. The victim's own request adds 36 bytes.
    ASSERT_LE(victim.written() - written, 9 * unit.size() + 36);
  }
}

TEST(ParserBounds, EachInputCostsInProportionToItsBytes) {
  constexpr void (*kPairs[])(Random*) = {
      GreetAtRandom,    AnswerAtRandom, RequestAtRandom, EndAtRandom, SetUpShm,
      NameAnAllocation, ConnectVerbs,   OfferVerbs,      SpeakTcp,
  };
  Random random;
  uint64_t inputs = 0;
  for (; random.GoesOn() && !HasFailure(); ++inputs) {
    kPairs[random.Below(sizeof kPairs / sizeof kPairs[0])](&random);
  }
  std::printf("%d inputs\n", static_cast<int>(inputs));
}

}  // namespace
}  // namespace fuzz
}  // namespace penstock
