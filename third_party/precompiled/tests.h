// Standard, Abseil and GoogleTest headers that most tests include.

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/precompiled/standard.h"
