// SPDX-License-Identifier: Apache-2.0
// long wait_call_sigsafe(long number, const long arguments[6], const uint32_t *broken_off)
//
// A system call that may wait, made for another frame, unless *broken_off says that there is no point in it: then
// -EINTR. Between wait_begin and wait_end it is not yet made; cancel.c takes a thread from there to wait_broken, so
// that there is no moment at which a cancellation is missed.
    .text
    .globl wait_call_sigsafe
    .hidden wait_call_sigsafe
    .type wait_call_sigsafe, %function
    .globl wait_begin
    .hidden wait_begin
    .globl wait_end
    .hidden wait_end
    .globl wait_broken
    .hidden wait_broken

wait_call_sigsafe:
    .cfi_startproc
    mov x8, x0
    mov x9, x1
    mov x10, x2
    ldp x0, x1, [x9]
    ldp x2, x3, [x9, 16]
    ldp x4, x5, [x9, 32]
wait_begin:
    ldr w11, [x10]
    cbnz w11, wait_broken
    svc 0
wait_end:
    ret
wait_broken:
    mov x0, -4
    ret
    .cfi_endproc
    .size wait_call_sigsafe, . - wait_call_sigsafe

    .section .note.GNU-stack, "", %progbits
