// The labels of metrics, with all their values.

#ifndef PENSTOCK_TRANSPORT_METRICS_LABELS_H_
#define PENSTOCK_TRANSPORT_METRICS_LABELS_H_

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace penstock {
namespace metrics {

// The labels of metrics. The values of each label are an enum. Text from a peer
// never becomes a label value, so peers cannot increase the number of series.
// labels.cc has the texts, in the same order.

enum class Label {
  kRole,
  kPath,
  kFabric,
  kKind,
  kDirection,
  kReason,
  kRefusal,
  kEnd,
  kBudget,
  kPool,
  kStatus,
};

// The role of this side of a connection.
enum class Role { kClient, kServer };
// The path that carries a connection. kOther is a fabric of a test.
enum class Path { kShm, kVerbs, kTcp, kHttp2, kOther };
// The fabric that carries the messages of a session.
enum class Fabric { kShm, kVerbs, kTcp, kOther };
enum class Kind { kEager, kAnnounced };
enum class Direction { kSent, kReceived };
// The reason why a connection has no better path.
enum class Reason {
  kNone,          // the path is the best one
  kNotEnabled,    // settings name no other fabric
  kUnusableHere,  // no device, no memory, TLS
  kNotOffered,  // the peer does not know the fabric, or its settings exclude it
  kUnusableAtPeer,  // the peer says so
  kSetupFailed,     // both sides offer the fabric, but its set-up failed
  kLost,            // the better path broke while it was in use
  kStockPeer,       // the peer does not speak Penstock
  kFlood,           // too many connections are being negotiated
};
enum class Refusal {
  kStockPeer,  // the policy requires Penstock
  kFlood,      // too many connections are being negotiated
  kToken,      // of transport/rpc's greeting
  kVersion,    // no version in common
};
// The way a session ended.
enum class End {
  kClosed,   // by one of the sides, or because the connection ended
  kTimeout,  // the peer sent no hello, or agreed on no path, in time
  kError,    // the peer broke the protocol or a limit
};
// The memory limits of a session; see session::Budget. kRead limits messages
// that are being read.
enum class Budget { kReplies, kAnswers, kOutbox, kUnread, kRead };
// A pool of memory for messages.
enum class Pool { kShm, kVerbs };
// The status of a work completion, named as in libibverbs.
enum class Completion {
  kLocLenErr,
  kLocQpOpErr,
  kLocProtErr,
  kWrFlushErr,
  kMwBindErr,
  kBadRespErr,
  kLocAccessErr,
  kRemInvReqErr,
  kRemAccessErr,
  kRemOpErr,
  kRetryExcErr,
  kRnrRetryExcErr,
  kRemAbortErr,
  kRespTimeoutErr,
  kFatalErr,
  kGeneralErr,
  kOther,
};

// Return the label's name, and its values in the order of the enum.
absl::string_view NameOf(Label label);
absl::Span<const absl::string_view> ValuesOf(Label label);

// The value of one label of a series.
struct Value {
  Value(Role v) : Value(Label::kRole, v) {}
  Value(Path v) : Value(Label::kPath, v) {}
  Value(Fabric v) : Value(Label::kFabric, v) {}
  Value(Kind v) : Value(Label::kKind, v) {}
  Value(Direction v) : Value(Label::kDirection, v) {}
  Value(Reason v) : Value(Label::kReason, v) {}
  Value(Refusal v) : Value(Label::kRefusal, v) {}
  Value(End v) : Value(Label::kEnd, v) {}
  Value(Budget v) : Value(Label::kBudget, v) {}
  Value(Pool v) : Value(Label::kPool, v) {}
  Value(Completion v) : Value(Label::kStatus, v) {}

  Label label;
  int index;

 private:
  template <typename Enum>
  Value(Label label, Enum value)
      : label(label), index(static_cast<int>(value)) {}
};

absl::string_view NameOf(Role role);
// Returns the role of this name, or nothing for an unknown name.
absl::optional<Role> RoleOf(absl::string_view name);
// Convert a name, such as "shm", to a fabric or a path; kOther if unknown.
Fabric FabricOf(absl::string_view name);
Path PathOf(absl::string_view name);
constexpr int kFabrics = 4;
constexpr int kKinds = 2;
constexpr int kDirections = 2;

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_LABELS_H_
