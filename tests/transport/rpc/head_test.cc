#include "transport/rpc/head.h"

#include <string>

#include "gtest/gtest.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace rpc {
namespace {

absl::StatusOr<Request> Parse(absl::string_view head) {
  bool is_stream = false;
  return ParseRequest(head, &is_stream);
}

TEST(Head, RequestComesThrough) {
  Request request;
  request.method = "tensor.Receive";
  request.metadata = std::string("\0meta\xff", 6);
  request.timeout = absl::Milliseconds(1500);
  const absl::StatusOr<std::string> head = EncodeRequest(request);
  ASSERT_TRUE(head.ok());
  const absl::StatusOr<Request> parsed = Parse(*head);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->method, request.method);
  EXPECT_EQ(parsed->metadata, request.metadata);
  EXPECT_EQ(parsed->timeout, request.timeout);
}

TEST(Head, StreamIsMarked) {
  Request request;
  request.method = "method";
  request.metadata = "meta";
  for (const bool sent : {false, true}) {
    bool is_stream = !sent;
    const absl::StatusOr<Request> parsed =
        ParseRequest(*EncodeRequest(request, sent), &is_stream);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(is_stream, sent);
    EXPECT_EQ(parsed->method, "method");
    EXPECT_EQ(parsed->metadata, "meta");
  }
  const std::string head = *EncodeRequest(request, /*is_stream=*/true);
  for (size_t size = 0; size + request.metadata.size() < head.size(); ++size) {
    EXPECT_FALSE(Parse(head.substr(0, size)).ok()) << size;
  }
}

TEST(Head, NoTimeoutIsInfinite) {
  Request request;
  request.method = "m";
  EXPECT_EQ(Parse(*EncodeRequest(request))->timeout, absl::InfiniteDuration());
}

TEST(Head, TimeoutOfNothingIsNotInfinite) {
  Request request;
  request.method = "m";
  for (absl::Duration timeout :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Seconds(-1)}) {
    request.timeout = timeout;
    EXPECT_EQ(Parse(*EncodeRequest(request))->timeout, absl::Microseconds(1));
  }
}

TEST(Head, BadRequestsAreNotSent) {
  Request request;
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeRequest(request).status()));
  request.method = std::string(256, 'm');
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeRequest(request).status()));
  request.method = std::string(255, 'm');
  request.metadata = std::string(kMaxMetadataBytes, 'x');
  EXPECT_TRUE(EncodeRequest(request).ok());
  EXPECT_LE(EncodeRequest(request)->size(), kMaxHeadBytes);
  request.metadata += 'x';
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeRequest(request).status()));
}

TEST(Head, RequestsCutShortAreErrors) {
  Request request;
  request.method = "method";
  const std::string head = *EncodeRequest(request);
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_FALSE(Parse(head.substr(0, size)).ok()) << size;
  }
  std::string nameless = head;
  nameless[8] = 0;
  EXPECT_FALSE(Parse(nameless).ok());
}

TEST(Head, MoreMetadataThanIsSentIsMalformed) {
  Request request;
  request.method = std::string(255, 'm');
  request.metadata = std::string(kMaxMetadataBytes, 'x');
  const std::string head = *EncodeRequest(request);
  EXPECT_TRUE(Parse(head).ok());
  EXPECT_FALSE(Parse(head + "x").ok());
  End end;
  end.metadata = std::string(kMaxMetadataBytes, 'x');
  EXPECT_TRUE(ParseEnd(EncodeEnd(end)).ok());
  EXPECT_FALSE(ParseEnd(EncodeEnd(end) + "x").ok());
}

TEST(Head, ALongerMessageThanIsSentIsMalformed) {
  for (const uint32_t length : {4000u, 4001u, 0x80000000u, UINT32_MAX}) {
    std::string head;
    wire::AppendNumber<uint32_t>(10, &head);  // ABORTED
    wire::AppendNumber<uint32_t>(length, &head);
    head.append(length <= 4001 ? length : 4001, 'x');
    EXPECT_EQ(ParseEnd(head).ok(), length == 4000) << length;
  }
}

TEST(Head, EndComesThrough) {
  End end;
  end.metadata = "meta";
  const absl::StatusOr<End> parsed = ParseEnd(EncodeEnd(end));
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->status.ok());
  EXPECT_EQ(parsed->metadata, "meta");
}

TEST(Head, ErrorComesThroughWithItsPayloads) {
  End end;
  end.status = absl::AbortedError("step 7 was aborted");
  EXPECT_EQ(ParseEnd(EncodeEnd(end))->status, end.status);
  end.status.SetPayload("type.example/empty", absl::Cord());
  end.status.SetPayload("type.example/bytes",
                        absl::Cord(std::string("\0\xff", 2)));
  EXPECT_EQ(ParseEnd(EncodeEnd(end))->status, end.status);
}

TEST(Head, ErrorComesThroughWithItsMetadata) {
  End end;
  end.status = absl::AbortedError("text");
  end.status.SetPayload("type.example/one", absl::Cord("value"));
  end.metadata = std::string("\0meta\xff", 6);
  absl::StatusOr<End> parsed = ParseEnd(EncodeEnd(end));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->status, end.status);
  EXPECT_EQ(parsed->metadata, end.metadata);
  end.metadata = std::string(kMaxTrailingBytes, 'x');
  parsed = ParseEnd(EncodeEnd(end));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->metadata, end.metadata);
  end.metadata += 'x';
  EXPECT_EQ(ParseEnd(EncodeEnd(end))->metadata, "");
}

TEST(Head, MetadataOfAnErrorComesOnceAndFirst) {
  End end;
  end.status = absl::AbortedError("");
  const size_t start = EncodeEnd(end).size();
  end.metadata = "meta";
  const std::string one = EncodeEnd(end);
  EXPECT_TRUE(ParseEnd(one).ok());
  EXPECT_FALSE(ParseEnd(one + one.substr(start)).ok());
}

TEST(Head, PayloadsThatAreTooLargeAreLeftOut) {
  End end;
  end.status = absl::AbortedError(std::string(4000, 'x'));
  end.status.SetPayload("large", absl::Cord(std::string(kMaxMetadataBytes, 0)));
  end.status.SetPayload("small", absl::Cord("kept"));
  const std::string head = EncodeEnd(end);
  EXPECT_LE(head.size(), kMaxHeadBytes);
  const absl::Status parsed = ParseEnd(head)->status;
  EXPECT_FALSE(parsed.GetPayload("large").has_value());
  EXPECT_EQ(parsed.GetPayload("small"), "kept");
}

TEST(Head, MorePayloadsThanAStatusHasAreMalformed) {
  End end;
  end.status = absl::AbortedError("text");
  for (int i = 10; i < 30; ++i) {
    end.status.SetPayload("url" + std::to_string(i), absl::Cord("v"));
  }
  std::string head = EncodeEnd(end);
  int count = 0;
  ParseEnd(head)->status.ForEachPayload(
      [&count](absl::string_view, const absl::Cord&) { ++count; });
  EXPECT_EQ(count, 16);
  constexpr size_t kOne = 4 + 5 + 4 + 1;
  head += head.substr(head.size() - kOne);
  EXPECT_FALSE(ParseEnd(head).ok());
}

TEST(Head, LongMessageIsCut) {
  End end;
  end.status = absl::AbortedError(std::string(100 * 1000, 'x'));
  EXPECT_EQ(ParseEnd(EncodeEnd(end))->status.message().size(), 4000);
}

TEST(Head, LongMessageIsNotCutInACharacter) {
  const std::string text(3999, 'x');
  const End end{absl::InternalError(text + "\u20ac and more"), ""};
  EXPECT_EQ(ParseEnd(EncodeEnd(end))->status.message(), text);
}

TEST(Head, UnknownCodeIsUnknown) {
  std::string head = EncodeEnd(End());
  head[0] = 99;
  EXPECT_EQ(ParseEnd(head)->status.code(), absl::StatusCode::kUnknown);
}

TEST(Head, EndsCutShortAreErrors) {
  End end;
  end.status = absl::AbortedError("text");
  const size_t without = EncodeEnd(end).size();
  end.status.SetPayload("type.example/text", absl::Cord("more"));
  const std::string head = EncodeEnd(end);
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_EQ(ParseEnd(head.substr(0, size)).ok(), size == without) << size;
  }
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
