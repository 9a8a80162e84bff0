// The labels of metrics, and all the values that they have.

#ifndef PENSTOCK_TRANSPORT_METRICS_LABELS_H_
#define PENSTOCK_TRANSPORT_METRICS_LABELS_H_

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace penstock {
namespace metrics {

// A label's values are those of an enum, and nothing else: what a peer says, or
// where it is, never becomes one. So the number of series is bounded, whatever
// peers do. labels.cc has the texts, in the same order.

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

// Of this side of a connection.
enum class Role { kClient, kServer };
// What carries a connection. Other: a fabric that tests bring.
enum class Path { kShm, kVerbs, kTcp, kHttp2, kOther };
// What carries the messages of a session.
enum class Fabric { kShm, kVerbs, kTcp, kOther };
enum class Kind { kEager, kAnnounced };
enum class Direction { kSent, kReceived };
// Why a connection has no better path.
enum class Reason {
  kNone,            // it has the best one
  kNotEnabled,      // settings name no other fabric
  kUnusableHere,    // no device, no memory, TLS
  kNotOffered,      // the peer does not know the fabric, or is told not to
  kUnusableAtPeer,  // the peer says so
  kSetupFailed,     // both offer it, and it did not come to be
  kLost,            // it broke while it was in use
  kStockPeer,       // the peer does not speak Penstock
  kFlood,           // too many connections are being negotiated
};
enum class Refusal {
  kStockPeer,  // the policy requires Penstock
  kFlood,      // too many connections are being negotiated
  kToken,      // of transport/rpc's greeting
  kVersion,    // no version in common
};
// How a session ended.
enum class End {
  kClosed,   // by a side, or with the connection
  kTimeout,  // the peer did not say hello, or agree on a path, in time
  kError,    // the peer broke the protocol or a limit
};
// See session::Budget, and memory for messages that are being read.
enum class Budget { kReplies, kAnswers, kOutbox, kUnread, kRead };
// Memory that is kept for messages.
enum class Pool { kShm, kVerbs };
// Of a work completion, as libibverbs names them.
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

// The label's name, and its values in the order of the enum.
absl::string_view NameOf(Label label);
absl::Span<const absl::string_view> ValuesOf(Label label);

// One label of a series.
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
// Nothing for any unknown.
absl::optional<Role> RoleOf(absl::string_view name);
// By its name, as "shm" of a fabric or of a path; kOther for any unknown.
Fabric FabricOf(absl::string_view name);
Path PathOf(absl::string_view name);
constexpr int kFabrics = 4;
constexpr int kKinds = 2;
constexpr int kDirections = 2;

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_LABELS_H_
