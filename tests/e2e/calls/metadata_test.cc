// Tests metadata in both directions, in comparison with stock gRPC.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr char kFail[] = "x-fail";  // requests an error instead of an answer
constexpr size_t kKi = 1024;

Metadata ToMetadata(
    const std::multimap<grpc::string_ref, grpc::string_ref>& received) {
  Metadata metadata;
  for (const auto& each : received) {
    metadata.emplace_back(std::string(each.first.data(), each.first.size()),
                          std::string(each.second.data(), each.second.size()));
  }
  return metadata;
}

// Echoes keys that begin with "x-", before and after its answer, and keeps all
// metadata.
class MetadataService final : public TestService::Service {
 public:
  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty*,
                         Empty*) override {
    received_ = ToMetadata(context->client_metadata());
    for (const auto& each : received_) {
      if (!absl::StartsWith(each.first, "x-")) continue;
      context->AddTrailingMetadata(each.first, each.second);
      if (each.first == kFail) return Failure();
      context->AddInitialMetadata(each.first, each.second);
    }
    return grpc::Status::OK;
  }

  static grpc::Status Failure() {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "as asked",
                        std::string("details\0of it", 13));
  }

  // Returns the metadata of the last call. Omits the user agent, which names
  // the transport.
  Metadata received() const {
    Metadata metadata = received_;
    for (auto& each : metadata) {
      if (each.first == "user-agent") each.second = "";
    }
    return metadata;
  }

 private:
  Metadata received_;
};

// All results of one call.
struct Answer {
  grpc::Status status;
  Metadata at_server;
  Metadata initial;
  Metadata trailing;
};

class MetadataTest : public testing::TestWithParam<Path> {
 protected:
  // Makes a call with the metadata `sent`. `limit` is the limit of metadata on
  // both sides; 0 means gRPC's default, 8 KiB.
  static Answer Ask(Path path, const Metadata& sent, int limit) {
    MetadataService service;
    Stack stack(path);
    grpc::ChannelArguments arguments;
    if (limit > 0) arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, limit);
    stack.Serve(&service, [&](grpc::ServerBuilder* builder) {
      if (limit == 0) return;
      builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limit);
    });
    auto channel = stack.NewChannel(arguments);
    auto stub = TestService::NewStub(channel);
    Call call;
    for (const auto& each : sent) call.AddMetadata(each.first, each.second);
    Empty response;
    Answer answer;
    answer.status = stub->EmptyCall(&call, Empty(), &response);
    answer.initial = ToMetadata(call.GetServerInitialMetadata());
    answer.trailing = ToMetadata(call.GetServerTrailingMetadata());
    answer.at_server = service.received();
    ExpectStillWorks(stack, channel.get(), stub.get());
    return answer;
  }

  // Expects that the next call uses the same connection, except in stock gRPC,
  // which may end a connection after too much metadata.
  static void ExpectStillWorks(const Stack& stack, grpc::Channel* channel,
                               TestService::Stub* stub) {
    if (!IsPenstock(stack.path())) return;
    EXPECT_TRUE(MakeEmptyCall(stub).ok());
    stack.ExpectPath(*channel);
  }

  // Returns the answer, which must be that of stock gRPC.
  static Answer ExpectAsStock(const Metadata& sent, int limit = 0) {
    const Answer stock = Ask(Path::kStock, sent, limit);
    const Answer answer = Ask(GetParam(), sent, limit);
    EXPECT_EQ(answer.status.error_code(), stock.status.error_code())
        << answer.status.error_message() << " / "
        << stock.status.error_message();
    EXPECT_EQ(answer.status.error_details(), stock.status.error_details());
    // Compares by ==, because EXPECT_EQ would print too much.
    EXPECT_TRUE(answer.at_server == stock.at_server);
    EXPECT_TRUE(answer.initial == stock.initial);
    EXPECT_TRUE(answer.trailing == stock.trailing);
    return answer;
  }

  // Makes the same call, and expects all metadata back.
  static void ExpectEchoed(const Metadata& sent, int limit = 0) {
    const Answer answer = ExpectAsStock(sent, limit);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_TRUE(answer.initial == sent);
    EXPECT_TRUE(answer.trailing == sent);
  }
};

TEST_P(MetadataTest, CallWithoutAnyHasWhatStockHas) { ExpectEchoed({}); }

TEST_P(MetadataTest, TextComesBack) {
  ExpectEchoed({{"x-a", "value"}, {"x-b.c_d-0", "!\"#~ two  blanks"}});
}

TEST_P(MetadataTest, BinaryValuesMayHoldAnyByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  ExpectEchoed({{"x-all-bin", all},
                {"x-comma-bin", "a,b"},
                {"x-one-bin", "\xff"},
                {"x-zero-bin", std::string(1, '\0')}});
}

TEST_P(MetadataTest, ValuesMayBeEmpty) {
  ExpectEchoed({{"x-empty", ""}, {"x-empty-bin", ""}, {"x-full", "x"}});
}

TEST_P(MetadataTest, ValuesOfOneKeyKeepTheirOrder) {
  ExpectEchoed({{"x-a", "2"},
                {"x-a", "1"},
                {"x-a", "2"},
                {"x-a-bin", "\x80"},
                {"x-a-bin", "\x7f"}});
}

TEST_P(MetadataTest, ErrorWithoutAMessageComesAsTrailersOnly) {
  const Answer answer = ExpectAsStock({{kFail, "now"}});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(answer.status.error_message(), "as asked");
  EXPECT_EQ(answer.status.error_details(),
            MetadataService::Failure().error_details());
  EXPECT_THAT(answer.trailing, testing::Contains(testing::Pair(kFail, "now")));
  EXPECT_TRUE(answer.initial.empty());
}

TEST_P(MetadataTest, SevenKibibytesGoByDefault) {
  ExpectEchoed({{"x-large", std::string(7 * kKi, 'x')}});
}

TEST_P(MetadataTest, NineKibibytesAreRefusedByDefault) {
  if (kIsEventEngine) GTEST_SKIP() << "the default of gRPC 1.83 is 16 KiB";
  const Answer answer = ExpectAsStock({{"x-large", std::string(9 * kKi, 'x')}});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_P(MetadataTest, TwoHundredKibibytesGoWhereTheLimitIsRaised) {
  Metadata sent;
  for (int i = 0; i < 200; ++i) {
    sent.emplace_back(absl::StrCat("x-", 100 + i), std::string(kKi - 64, 'a'));
  }
  ExpectEchoed(sent, 256 * kKi);
}

TEST_P(MetadataTest, OneValueOfTwoHundredKibibytesGoesToo) {
  std::string value(200 * kKi, '\0');
  for (size_t i = 0; i < value.size(); ++i) value[i] = i % 251;
  ExpectEchoed({{"x-large-bin", value}}, 512 * kKi);
}

TEST_P(MetadataTest, MoreThanARaisedLimitIsRefused) {
  const Answer answer =
      ExpectAsStock({{"x-large", std::string(64 * kKi, 'x')}}, 32 * kKi);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// Tests of repeated metadata, which a connection sends by number.
class RepeatedMetadataTest : public testing::TestWithParam<Path> {
 protected:
  RepeatedMetadataTest() : stack_(GetParam()) {
    stack_.Serve(&service_);
    channel_ = stack_.NewChannel();
    stub_ = TestService::NewStub(channel_);
  }

  // Returns the metadata before and after the answer.
  grpc::Status Ask(const Metadata& sent, Metadata* initial,
                   Metadata* trailing) {
    Call call;
    for (const auto& each : sent) call.AddMetadata(each.first, each.second);
    Empty response;
    const grpc::Status status = stub_->EmptyCall(&call, Empty(), &response);
    *initial = ToMetadata(call.GetServerInitialMetadata());
    *trailing = ToMetadata(call.GetServerTrailingMetadata());
    return status;
  }

  MetadataService service_;
  Stack stack_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(RepeatedMetadataTest, ComesEachTime) {
  for (int i = 0; i < 200; ++i) {
    const Metadata sent = {{"x-each", "the same"},
                           {"x-few", absl::StrCat(i % 7)},
                           {"x-long", std::string(100 * (i % 60), 'x')},
                           {"x-none", absl::StrCat("another ", i)},
                           {"x-this-bin", std::string("\0\xff", 2)},
                           {"x-twice", "the same"},
                           {"x-twice", "the same"}};
    Metadata initial, trailing;
    const grpc::Status status = Ask(sent, &initial, &trailing);
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
    ASSERT_TRUE(initial == sent) << i;
    ASSERT_TRUE(trailing == sent) << i;
  }
}

TEST_P(RepeatedMetadataTest, CountsInFullEachTime) {
  if (!IsPenstock(GetParam())) {
    GTEST_SKIP() << "stock gRPC may end a connection that has brought too much";
  }
  const std::string value(3 * kKi, 'x');
  const Metadata sent = {{"x-a", value}, {"x-b", value}, {"x-c", value}};
  for (int i = 0; i < 4; ++i) {
    Metadata initial, trailing;
    EXPECT_EQ(Ask(sent, &initial, &trailing).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED)
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, RepeatedMetadataTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, MetadataTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
