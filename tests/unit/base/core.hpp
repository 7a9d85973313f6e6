// SPDX-License-Identifier: Apache-2.0
//
// The core's headers, which are C, for the tests, which are C++.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define _Alignas alignas
extern "C" {
#include "base/atomic.h"
#include "base/rows.h"
#include "base/slab.h"
#include "base/text.h"
#include "kthread/counters.h"
#include "kthread/fresh/fresh.h"
#include "kthread/fresh/tls_layout.h"
#include "kthread/gate.h"
#include "kthread/idle.h"
#include "kthread/internal.h"
#include "kthread/kthread.h"
#include "kthread/libc.h"
#include "kthread/site.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/ticks.h"
#include "os/topology.h"
}
#undef _Alignas
