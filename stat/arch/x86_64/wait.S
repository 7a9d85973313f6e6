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
    movq %rdi, %rax
    movq %rsi, %r11
    movq %rdx, %rcx
    movq (%r11), %rdi
    movq 8(%r11), %rsi
    movq 16(%r11), %rdx
    movq 24(%r11), %r10
    movq 32(%r11), %r8
    movq 40(%r11), %r9
wait_begin:
    cmpl $0, (%rcx)
    jne wait_broken
    syscall
wait_end:
    ret
wait_broken:
    movq $-4, %rax
    ret
    .cfi_endproc
    .size wait_call_sigsafe, . - wait_call_sigsafe

    .section .note.GNU-stack, "", %progbits
