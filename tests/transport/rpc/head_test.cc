#include "transport/rpc/head.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace rpc {
namespace {

TEST(Head, RequestComesThrough) {
  Request request;
  request.method = "tensor.Receive";
  request.metadata = std::string("\0meta\xff", 6);
  request.timeout = absl::Milliseconds(1500);
  const absl::StatusOr<std::string> head = EncodeRequest(request);
  ASSERT_TRUE(head.ok());
  const absl::StatusOr<Request> parsed = ParseRequest(*head);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->method, request.method);
  EXPECT_EQ(parsed->metadata, request.metadata);
  EXPECT_EQ(parsed->timeout, request.timeout);
}

TEST(Head, NoTimeoutIsInfinite) {
  Request request;
  request.method = "m";
  EXPECT_EQ(ParseRequest(*EncodeRequest(request))->timeout,
            absl::InfiniteDuration());
}

TEST(Head, TimeoutOfNothingIsNotInfinite) {
  Request request;
  request.method = "m";
  for (absl::Duration timeout :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Seconds(-1)}) {
    request.timeout = timeout;
    EXPECT_EQ(ParseRequest(*EncodeRequest(request))->timeout,
              absl::Microseconds(1));
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
    EXPECT_FALSE(ParseRequest(head.substr(0, size)).ok()) << size;
  }
  std::string nameless = head;
  nameless[8] = 0;
  EXPECT_FALSE(ParseRequest(nameless).ok());
}

TEST(Head, EndComesThrough) {
  End end;
  end.status = absl::AbortedError("step 7 was aborted");
  end.metadata = "meta";
  const absl::StatusOr<End> parsed = ParseEnd(EncodeEnd(end));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->status, end.status);
  EXPECT_EQ(parsed->metadata, "meta");
  EXPECT_TRUE(ParseEnd(EncodeEnd(End()))->status.ok());
}

TEST(Head, LongMessageIsCut) {
  End end;
  end.status = absl::AbortedError(std::string(100 * 1000, 'x'));
  EXPECT_EQ(ParseEnd(EncodeEnd(end))->status.message().size(), 4000);
}

TEST(Head, UnknownCodeIsUnknown) {
  std::string head = EncodeEnd(End());
  head[0] = 99;
  EXPECT_EQ(ParseEnd(head)->status.code(), absl::StatusCode::kUnknown);
}

TEST(Head, EndsCutShortAreErrors) {
  End end;
  end.status = absl::AbortedError("text");
  const std::string head = EncodeEnd(end);
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_FALSE(ParseEnd(head.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
