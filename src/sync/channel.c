// SPDX-License-Identifier: Apache-2.0
/* See channel.h. */
#include "sync/channel.h"
#include "sched/cancel.h"

#include <errno.h>
#include <stdint.h>

/* --- the lock ----------------------------------------------------------------------------------------- */

/* The closing thread is not preempted before it is done: it is on another worker. */
uint32_t channel_lock(struct channel *channel) {
    for (unsigned tries = 0;; tries++) {
        enter();
        uint32_t word = word_lock(&channel->word);
        if (__builtin_expect(!(word & CHANNEL_CLOSING), 1))
            return word;
        word_unlock(&channel->word, word);
        leave();
        thrum_yield();
        backoff(tries);
    }
}

void channel_unlock(struct channel *channel, uint32_t word) {
    word_unlock(&channel->word, word);
    leave();
}

/* --- waiting ------------------------------------------------------------------------------------------ */

void channel_leave(struct channel *channel, struct waiters *list, struct waiter *waiter) {
    uint32_t word;
    if (!waiter_return(waiter, &channel->word, &word))
        return;
    waiters_remove(list, waiter);
    word_unlock(&channel->word, word);
}

/* With SPIN, which this gives back. */
LEAVES static int wait_in(struct channel *channel, struct waiters *list, void *element, uint64_t deadline) {
    struct worker *worker = worker_here();
    struct wait wait = {.unit = unit_self(worker)};
    deadline = cancel_point(worker, deadline);
    struct waiter waiter = waiter_make(&wait, deadline != TIMER_NEVER);
    waiter.value = element;
    waiter_await(wait.unit, list == &channel->senders ? AWAITS_SEND : AWAITS_RECEIVE, channel, deadline);
    waiters_add(list, &waiter);
    word_unlock(&channel->word, 0);
    if (!waiter_block(worker, &wait, deadline)) {
        channel_leave(channel, list, &waiter);
        waiter.result = ETIMEDOUT;
    }
    leave();
    return cancel_act(waiter.result);
}

LEAVES static void unlock_and_wake(struct channel *channel, struct waiter *waiter) {
    word_unlock(&channel->word, 0);
    if (waiter != NULL)
        waiter_wake(worker_here(), waiter);
    leave();
}

/* --- sending ------------------------------------------------------------------------------------------ */

/* To a receiver that waits, if there is one. */
INSIDE static struct waiter *hand_to_receiver(struct channel *channel, const void *element) {
    struct waiter *receiver = waiters_take(&channel->receivers);
    if (receiver != NULL)
        element_copy(receiver->value, element, channel->store.size);
    return receiver;
}

/* SPIN has been given back and has to be taken again: all may have changed. */
LEAVES static int make_room(struct channel *channel, uint32_t word) {
    channel_unlock(channel, word);
    struct block *block = block_new(&channel->store);
    if (block == NULL)
        return ENOMEM;
    word = channel_lock(channel);
    block = store_give(&channel->store, block);
    channel_unlock(channel, word);
    block_free(block);
    return 0;
}

/* An element of no bytes may be nowhere. */
static bool is_no_element(const struct channel *channel, const void *element) {
    return is_null(element) && channel->store.size != 0;
}

/* True: it would have to wait, and SPIN is held. False: *error is the outcome. */
ENTERS_IF_TRUE static bool must_wait_to_send(struct channel *channel, const void *element, int *error) {
    *error = 0;
    for (;;) {
        uint32_t word = channel_lock(channel);
        if (word & CHANNEL_CLOSED) {
            channel_unlock(channel, word);
            *error = EPIPE;
            return false;
        }
        struct waiter *receiver = hand_to_receiver(channel, element);
        if (receiver == NULL) {
            if (store_is_full(&channel->store))
                return true;
            if (__builtin_expect(store_lacks_block(&channel->store), 0)) {
                if ((*error = make_room(channel, word)) != 0)
                    return false;
                continue;
            }
            store_put(&channel->store, element);
        }
        unlock_and_wake(channel, receiver);
        return false;
    }
}

/* --- receiving ---------------------------------------------------------------------------------------- */

/* From the store, whose place the sender gets that has waited for longest; from a sender, where there is no store. */
INSIDE static bool take_element(struct channel *channel, void *element, struct waiter **sender,
                                struct block **empty) {
    struct store *store = &channel->store;
    bool stored = store->count > 0;
    if (stored)
        *empty = store_get(store, element);
    *sender = waiters_take(&channel->senders);
    if (*sender == NULL)
        return stored;
    if (stored)
        store_put(store, (*sender)->value);
    else
        element_copy(element, (*sender)->value, store->size);
    return true;
}

/* As must_wait_to_send. */
ENTERS_IF_TRUE static bool must_wait_to_receive(struct channel *channel, void *element, int *error) {
    uint32_t word = channel_lock(channel);
    struct waiter *sender = NULL;
    struct block *empty = NULL;
    if (take_element(channel, element, &sender, &empty)) {
        word_unlock(&channel->word, word);
        if (sender != NULL)
            waiter_wake(worker_here(), sender);
        leave();
        block_free(empty);
        *error = 0;
        return false;
    }
    if (!(word & CHANNEL_CLOSED))
        return true;
    channel_unlock(channel, word);
    *error = EPIPE;
    return false;
}

/* --- thrum_channel_t ---------------------------------------------------------------------------------- */

enum { ELEMENT_MAX = 1 << 30 };

int thrum_channel_init(thrum_channel_t *channel, size_t element_size, size_t capacity, void *storage) {
    if (is_null(channel))
        return EINVAL;
    bool bounded = capacity != 0 && capacity != THRUM_CHANNEL_UNBOUNDED && element_size != 0;
    if (element_size > ELEMENT_MAX || (bounded && (storage == NULL || capacity > PTRDIFF_MAX / element_size)))
        return EINVAL;
    *channel_of(channel) =
        (struct channel){.store = {.ring = storage, .capacity = capacity, .size = element_size}};
    return 0;
}

int thrum_channel_send_until(thrum_channel_t *object, const void *element, uint64_t deadline) {
    if (is_null(object) || is_no_element(channel_of(object), element))
        return EINVAL;
    struct channel *channel = channel_of(object);
    int error;
    if (must_wait_to_send(channel, element, &error))
        return wait_in(channel, &channel->senders, (void *)(uintptr_t)element,
                       deadline); /* it is only read */
    return error;
}

int thrum_channel_send(thrum_channel_t *channel, const void *element) {
    return thrum_channel_send_until(channel, element, TIMER_NEVER);
}

int thrum_channel_try_send(thrum_channel_t *object, const void *element) {
    if (is_null(object) || is_no_element(channel_of(object), element))
        return EINVAL;
    int error;
    if (must_wait_to_send(channel_of(object), element, &error)) {
        channel_unlock(channel_of(object), 0);
        return EAGAIN;
    }
    return error;
}

int thrum_channel_receive_until(thrum_channel_t *object, void *element, uint64_t deadline) {
    if (is_null(object))
        return EINVAL;
    struct channel *channel = channel_of(object);
    int error;
    if (must_wait_to_receive(channel, element, &error))
        return wait_in(channel, &channel->receivers, element, deadline);
    return error;
}

int thrum_channel_receive(thrum_channel_t *channel, void *element) {
    return thrum_channel_receive_until(channel, element, TIMER_NEVER);
}

int thrum_channel_try_receive(thrum_channel_t *object, void *element) {
    if (is_null(object))
        return EINVAL;
    int error;
    if (must_wait_to_receive(channel_of(object), element, &error)) {
        channel_unlock(channel_of(object), 0);
        return EAGAIN;
    }
    return error;
}

int thrum_channel_close(thrum_channel_t *object) {
    if (is_null(object))
        return EINVAL;
    struct channel *channel = channel_of(object);
    uint32_t word = channel_lock(channel);
    if (word & CHANNEL_CLOSED) {
        channel_unlock(channel, word);
        return EPIPE;
    }
    struct waiters taken = {.first = NULL};
    enter_twice(); /* waiters_take_all leaves: a tasklet here that met CLOSING could not let us run */
    waiters_take_all(&channel->receivers, &channel->word, CHANNEL_CLOSING, 0, &taken);
    waiters_take_all(&channel->senders, &channel->word, CHANNEL_CLOSING, 0, &taken);
    word_unlock(&channel->word, CHANNEL_CLOSED);
    leave_once();
    waiters_wake(&taken, EPIPE);
    leave();
    return 0;
}

size_t thrum_channel_count(thrum_channel_t *object) {
    if (is_null(object))
        return 0;
    uint32_t word = channel_lock(channel_of(object));
    size_t count = channel_of(object)->store.count;
    channel_unlock(channel_of(object), word);
    return count;
}

int thrum_channel_destroy(thrum_channel_t *object) {
    if (is_null(object))
        return EINVAL;
    struct channel *channel = channel_of(object);
    uint32_t word = channel_lock(channel);
    bool used = channel->senders.first != NULL || channel->receivers.first != NULL;
    channel_unlock(channel, word);
    if (used)
        return misuse(EBUSY, "thrum_channel_destroy: a thread still waits for this channel");
    store_clear(&channel->store);
    return 0;
}
