// Tests penstock::Destinations over every path: where the parts of an answer
// are, and when writes to the memory end.

#include "penstock/destinations.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using Sizes = std::vector<size_t>;

constexpr size_t kLarge = 300 * 1000;  // large enough for any kind of memory
constexpr std::chrono::seconds kPatience(20);
// The size of a message that is large enough for registered memory, but too
// small for other kinds of memory.
constexpr size_t kSmall = 100 * 1000;

// Answers "100,70000" with a message of two slices of these sizes.
class SlicesService final : public grpc::CallbackGenericService {
 public:
  // Returns the contents of the slice at this index.
  static std::string BytesOf(size_t size, size_t index) {
    return Pattern(size, static_cast<unsigned>(index) + 1);
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status(grpc::StatusCode::UNKNOWN, "none"));
      std::vector<grpc::Slice> slices;
      for (absl::string_view text : absl::StrSplit(ToBytes(message_), ',')) {
        size_t size = 0;
        EXPECT_TRUE(absl::SimpleAtoi(text, &size));
        slices.push_back(grpc::Slice(BytesOf(size, slices.size())));
      }
      message_ = grpc::ByteBuffer(slices.data(), slices.size());
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

class DestinationsTest : public StackTest {
 protected:
  void SetUp() override {
    Serve(&service_, [this](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&slices_);
    });
    ASSERT_TRUE(Get({10}, nullptr).ok());
  }
  ~DestinationsTest() override { StopServing(std::chrono::milliseconds(0)); }

  bool reads_into_places() const { return GetParam() == Path::kVerbs; }

  // One unary call at a time. The answer is received into the attached
  // destinations if possible.
  struct Pending {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer answer;
    grpc::Status status;

    void Wait() {
      void* tag;
      bool ok;
      EXPECT_TRUE(queue.Next(&tag, &ok));
    }
  };
  std::unique_ptr<Pending> Start(const Sizes& sizes,
                                 const Destinations* places) {
    auto call = std::make_unique<Pending>();
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::seconds(60));
    call->context.set_wait_for_ready(true);
    call->reader = grpc::GenericStub(channel()).PrepareUnaryCall(
        &call->context, kRawMethod, ToBuffer(absl::StrJoin(sizes, ",")),
        &call->queue);
    if (places != nullptr) places->AttachTo(&call->context);
    call->reader->StartCall();
    call->reader->Finish(&call->answer, &call->status, call.get());
    return call;
  }
  grpc::Status Get(const Sizes& sizes, const Destinations* places) {
    std::unique_ptr<Pending> call = Start(sizes, places);
    call->Wait();
    answer_ = call->answer;
    if (!call->status.ok()) return call->status;
    std::string expected;
    for (size_t i = 0; i < sizes.size(); ++i) {
      expected += SlicesService::BytesOf(sizes[i], i);
    }
    EXPECT_TRUE(ToBytes(answer_) == expected);
    return call->status;
  }
  // Returns true if a slice of the answer lies inside `place`.
  static bool IsIn(const grpc::ByteBuffer& answer, const std::string& place) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(answer.Dump(&slices).ok());
    return std::any_of(
        slices.begin(), slices.end(), [&](const grpc::Slice& slice) {
          const auto* const begin =
              reinterpret_cast<const char*>(slice.begin());
          return begin == place.data() && slice.size() == place.size();
        });
  }
  // Waits until nothing writes to the destinations any more. Meanwhile polls
  // the transport, like a thread that waits in gRPC.
  bool AwaitFree(const Destinations& places) {
    grpc::CompletionQueue queue;
    void* tag;
    bool ok;
    for (int i = 0; i < 1000 && places.in_use(); ++i) {
      queue.AsyncNext(
          &tag, &ok,
          std::chrono::system_clock::now() + std::chrono::milliseconds(10));
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return !places.in_use();
  }

  static Destinations::Range RangeOf(std::string* place) {
    return {&(*place)[0], place->size()};
  }

  TestServiceImpl service_;
  SlicesService slices_;
  grpc::ByteBuffer answer_;
};

TEST_P(DestinationsTest, SlicesLandInPlacesOfTheirSize) {
  std::string a(kLarge, 'Z'), b(2 * kLarge, 'Z'), c(kLarge + 1, 'Z');
  const auto places =
      Destinations::Make({RangeOf(&b), RangeOf(&c), RangeOf(&a)}, nullptr);
  ASSERT_TRUE(Get({10, kLarge, 500, 2 * kLarge, 7}, places.get()).ok());
  EXPECT_EQ(IsIn(answer_, a), reads_into_places());
  EXPECT_EQ(IsIn(answer_, b), reads_into_places());
  EXPECT_FALSE(IsIn(answer_, c));
  EXPECT_EQ(c, std::string(c.size(), 'Z'));
  EXPECT_EQ(a == SlicesService::BytesOf(kLarge, 1), reads_into_places());
  EXPECT_EQ(places->in_use(), reads_into_places()) << "by the answer";
  answer_.Clear();
  EXPECT_FALSE(places->in_use());
  ExpectPath(*channel());
}

TEST_P(DestinationsTest, PlacesForManyCallsMayBeSmall) {
  std::string a(kSmall, 'Z');
  const auto once = Destinations::Make({RangeOf(&a)}, nullptr);
  ASSERT_TRUE(Get({10, kSmall}, once.get()).ok());
  EXPECT_FALSE(IsIn(answer_, a));
  const auto often =
      Destinations::Make({RangeOf(&a)}, nullptr, Destinations::Use::kOften);
  for (int i = 0; i < 5; ++i) {
    std::fill(a.begin(), a.end(), 'Z');
    ASSERT_TRUE(Get({10u + i, kSmall}, often.get()).ok());
    EXPECT_EQ(IsIn(answer_, a), reads_into_places());
    answer_.Clear();
  }
}

TEST_P(DestinationsTest, ShortAnswerLeavesThemAlone) {
  std::string a(100, 'Z');
  const auto places =
      Destinations::Make({RangeOf(&a)}, nullptr, Destinations::Use::kOften);
  ASSERT_TRUE(Get({100}, places.get()).ok());
  EXPECT_EQ(a, std::string(100, 'Z'));
  EXPECT_FALSE(places->in_use());
}

TEST_P(DestinationsTest, OneOfTwoCallsGetsThem) {
  std::string a(kLarge, 'Z');
  const auto places = Destinations::Make({RangeOf(&a)}, nullptr);
  std::unique_ptr<Pending> first = Start({10, kLarge}, places.get());
  first->Wait();
  ASSERT_TRUE(Get({kLarge, 20}, places.get()).ok());
  EXPECT_FALSE(IsIn(answer_, a)) << "the first answer lies there";
  EXPECT_EQ(IsIn(first->answer, a), reads_into_places());
  EXPECT_EQ(ToBytes(first->answer),
            SlicesService::BytesOf(10, 0) + SlicesService::BytesOf(kLarge, 1));
}

TEST_P(DestinationsTest, OwnerIsHeldUntilTheAnswerIsDropped) {
  auto a = std::make_shared<std::string>(kLarge, 'Z');
  std::weak_ptr<std::string> alive = a;
  auto places = Destinations::Make({RangeOf(a.get())}, a);
  const std::string* const memory = a.get();
  a.reset();
  ASSERT_TRUE(Get({kLarge, 10}, places.get()).ok());
  places.reset();
  if (reads_into_places()) {
    ASSERT_FALSE(alive.expired());
    EXPECT_TRUE(IsIn(answer_, *memory));
  }
  answer_.Clear();
  // Waits, because another thread of gRPC may briefly hold the call and its
  // memory.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!alive.expired() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(alive.expired());
}

// Cancels calls at different moments. Once in_use() is false, nothing may write
// to the memory.
TEST_P(DestinationsTest, CancelledCallLeavesThemInTime) {
  std::string a(16 << 20, 'Z');
  const auto places = Destinations::Make({RangeOf(&a)}, nullptr);
  int cancelled = 0;
  for (int i = 0; i < 20; ++i) {
    std::unique_ptr<Pending> call = Start({10, a.size()}, places.get());
    void* tag;
    bool ok;
    call->queue.AsyncNext(
        &tag, &ok,
        std::chrono::system_clock::now() + std::chrono::microseconds(500 * i));
    call->context.TryCancel();
    if (call->status.ok() && call->answer.Length() == 0) {
      call->queue.Next(&tag, &ok);
    }
    cancelled += call->status.error_code() == grpc::StatusCode::CANCELLED;
    call.reset();
    ASSERT_TRUE(AwaitFree(*places)) << "call " << i;
    std::fill(a.begin(), a.end(), 'F');
    ASSERT_TRUE(Get({10, 1000}, nullptr).ok());
    ASSERT_EQ(a.find_first_not_of('F'), std::string::npos) << "call " << i;
  }
  EXPECT_GT(cancelled, 0);
}

TEST_P(DestinationsTest, CallThatIsNotMadeYetHasNone) {
  std::string a(kLarge, 'Z');
  grpc::ClientContext context;
  Destinations::Make({RangeOf(&a)}, nullptr)->AttachTo(&context);
}

INSTANTIATE_TEST_SUITE_P(Paths, DestinationsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
