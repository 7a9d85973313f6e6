// SPDX-License-Identifier: Apache-2.0
/* In which context a function of libthrum may be called, for clang's thread-safety analysis to check
 * (scripts/check-contexts.sh); to other compilers all this is nothing.
 *
 * *Inside* is between enter() and leave() (sched/current.h): in libthrum's own non-preemptible region, on a worker that the
 * caller keeps, or on an external kernel thread. Each caller of an INSIDE function is inside as well, or has entered.
 * On a declaration in a header, else on the definition, the macro comes first.
 *
 * The analysis reads one function at a time, and regions are counted: a second enter() within an INSIDE function is an
 * error to it. What it does not see: calls by pointer, assembly (context.S), and which worker it is. A function whose
 * region depends on a condition is INSIDE_UNCHECKED, and says why. */
#ifndef THRUM_BASE_INSIDE_H
#define THRUM_BASE_INSIDE_H

#ifdef __clang__
#define INSIDE_ATTRIBUTE_(attribute) __attribute__((attribute))
/* What stands for the region: it is declared, and does not exist. */
extern struct INSIDE_ATTRIBUTE_(capability("region")) inside_region inside_region;
#else
#define INSIDE_ATTRIBUTE_(attribute)
#endif

/* The caller is inside, and still is, or is again, when it returns. */
#define INSIDE INSIDE_ATTRIBUTE_(requires_capability(inside_region))
/* The caller is not, as this waits for locks that a unit may hold: libc's, or a mutex of the program's. */
#define NOT_INSIDE INSIDE_ATTRIBUTE_(locks_excluded(inside_region))
/* The caller is inside from here on; and not any more. */
#define ENTERS INSIDE_ATTRIBUTE_(acquire_capability(inside_region))
#define LEAVES INSIDE_ATTRIBUTE_(release_capability(inside_region))
/* ... if it returns true. Its own body is not checked. */
#define ENTERS_IF_TRUE INSIDE_ATTRIBUTE_(try_acquire_capability(true, inside_region))

#define INSIDE_UNCHECKED INSIDE_ATTRIBUTE_(no_thread_safety_analysis)

/* Signal handlers call it, too: it takes no lock that what they interrupt may hold, and of libc calls async-signal-safe
 * functions alone. scripts/check-signals.py reads this; what is INSIDE needs it not, as handlers go inside only if they have
 * interrupted what was not. A function of which one variant alone may do so has the suffix _sigsafe instead. */
#define SIGSAFE

#endif
