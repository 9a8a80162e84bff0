#include "transport/progress/ask_until_done.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <utility>
#include <vector>

#include "transport/base/mutex.h"
#include "transport/progress/detached_thread.h"

namespace penstock {
namespace progress {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSoonest(20);
constexpr std::chrono::microseconds kLatest(1000);

struct Question {
  std::function<bool()> is_done;
  Clock::time_point begun;
  Clock::time_point next;
};

// The open questions, and the thread that asks them. Never destroyed, because
// the thread runs until the process ends.
struct Questions {
  base::Mutex mu;
  std::condition_variable_any added;
  std::vector<Question> fresh ABSL_GUARDED_BY(mu);
  bool has_thread ABSL_GUARDED_BY(mu) = false;
};

std::atomic<Questions*> current{nullptr};

// Makes the child of a fork create new questions. The thread exists only in the
// parent, and may have held the lock.
void ForgetInChild() { current.store(nullptr); }

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetInChild);

Questions* TheQuestions() {
  Questions* questions = current.load(std::memory_order_acquire);
  if (questions != nullptr) return questions;
  auto* const made = new Questions;
  if (current.compare_exchange_strong(questions, made)) return made;
  delete made;
  return questions;
}

// Asks the questions that are due. Returns the time of the next question.
Clock::time_point Ask(std::vector<Question>* open) {
  Clock::time_point soonest = Clock::time_point::max();
  for (size_t i = 0; i < open->size();) {
    Question& question = (*open)[i];
    const Clock::time_point now = Clock::now();
    if (question.next <= now) {
      if (question.is_done()) {
        std::swap(question, open->back());
        open->pop_back();
        continue;
      }
      question.next = now + std::min<Clock::duration>(
                                std::max<Clock::duration>(
                                    (now - question.begun) / 8, kSoonest),
                                kLatest);
    }
    soonest = std::min(soonest, question.next);
    ++i;
  }
  return soonest;
}

void* Run(void* argument) {
  auto* const questions = static_cast<Questions*>(argument);
  std::vector<Question> open;
  Clock::time_point next = Clock::time_point::max();
  for (;;) {
    {
      base::MutexLock lock(&questions->mu);
      while (questions->fresh.empty() && Clock::now() < next) {
        if (open.empty()) {
          questions->added.wait(questions->mu);
        } else {
          questions->added.wait_until(questions->mu, next);
        }
      }
      for (Question& question : questions->fresh) {
        open.push_back(std::move(question));
      }
      questions->fresh.clear();
    }
    next = Ask(&open);
  }
  return nullptr;
}

}  // namespace

absl::Status AskUntilDone(std::function<bool()> is_done) {
  const Clock::time_point now = Clock::now();
  Questions* const questions = TheQuestions();
  base::MutexLock lock(&questions->mu);
  if (!questions->has_thread) {
    absl::Status started = StartDetachedThread("penstock-ask", &Run, questions);
    if (!started.ok()) return started;
    questions->has_thread = true;
  }
  questions->fresh.push_back({std::move(is_done), now, now});
  questions->added.notify_one();
  return absl::OkStatus();
}

}  // namespace progress
}  // namespace penstock
