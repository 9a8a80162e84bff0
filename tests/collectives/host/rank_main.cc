// A program that is one rank of a group, for tests that kill it.
//
// usage: rank lead RANKS | rank [busy|asleep] INVITATION... RANK RANKS
//
// "busy" keeps the process's event loop, and so its heartbeat, from running for
// 2.5 s after "ready". The rank calls no operation meanwhile. "asleep" does the
// same with a loop that sleeps. Both print "on time" after the first reduction.
//
// Rank 0 prints "invitation X". Each rank prints "ready" after a barrier, then
// reduces until an error, which it prints as "error X" with the time since its
// last success. Then reads from its input: "lead RANKS" or "INVITATION RANK
// RANKS" forms a new group, and the end of the input ends the program.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "transport/progress/event_loop.h"

namespace penstock::collectives {
namespace {

void Print(const std::string& line) {
  std::cout << line << std::endl;  // flushes
}

int Number(const std::string& text) {
  int number = -1;
  (void)absl::SimpleAtoi(text, &number);
  return number;
}

absl::StatusOr<std::unique_ptr<HostGroup>> Form(
    const std::vector<std::string>& words) {
  HostGroupOptions options;
  options.ranks = Number(words.back());
  if (words[0] != "lead") {
    return HostGroup::Join(absl::StrCat(words[0], " ", words[1]),
                           Number(words[2]), options);
  }
  auto meeting = Meeting::Open();
  if (!meeting.ok()) return meeting.status();
  Print(absl::StrCat("invitation ", meeting->invitation()));
  return HostGroup::Lead(*std::move(meeting), options);
}

constexpr absl::Duration kHeld = absl::Milliseconds(2500);

// Keeps the event loop's thread for 2.5 s, in a busy loop or asleep.
void HoldLoop(bool spins) {
  const auto loop = progress::EventLoop::Get();
  const absl::Time end = absl::Now() + kHeld;
  (*loop)->Post([spins, end] {
    if (!spins) absl::SleepFor(end - absl::Now());
    while (absl::Now() < end) {
    }
  });
  absl::SleepFor(kHeld);
}

void Run(const std::string& command) {
  std::vector<std::string> words = absl::StrSplit(command, ' ');
  const bool busy = words[0] == "busy";
  const bool holds = busy || words[0] == "asleep";
  if (holds) words.erase(words.begin());
  auto group = Form(words);
  absl::Status status = group.status();
  if (status.ok()) status = (*group)->Barrier();
  if (status.ok()) Print("ready");
  if (holds) HoldLoop(busy);
  // Uses data that do not fit into a slot, so that an operation has several
  // meetings. A rank may die in each meeting.
  std::vector<float> data(200'000);
  absl::Time last = absl::Now();
  for (int i = 0; status.ok(); ++i) {
    last = absl::Now();
    status =
        (*group)->AllReduce(ReduceOp::kMax, tensor::DType::kF32, data.data(),
                            data.data(), static_cast<int64_t>(data.size()));
    if (i == 0 && holds && status.ok()) Print("on time");
  }
  Print(absl::StrCat("error ", status.message(), " | after ",
                     absl::FormatDuration(absl::Now() - last)));
}

}  // namespace
}  // namespace penstock::collectives

int main(int argc, char** argv) {
  std::string command =
      absl::StrJoin(std::vector<std::string>(argv + 1, argv + argc), " ");
  do {
    penstock::collectives::Run(command);
  } while (std::getline(std::cin, command));
  return 0;
}
