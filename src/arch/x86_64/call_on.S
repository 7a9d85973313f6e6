// SPDX-License-Identifier: Apache-2.0
// See arch_call_on.h.
    .text
    .p2align 4
    .globl  arch_call_on
    .hidden arch_call_on
    .type   arch_call_on, @function
arch_call_on:                           // (rdi: top, rsi: fn, rdx: argument)
    .cfi_startproc
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq    %rdi, %rsp
    .cfi_remember_state
    .cfi_undefined %rip
    movq    %rdx, %rdi
    call    *%rsi
    .cfi_restore_state
    movq    %rbp, %rsp
    .cfi_def_cfa_register %rsp
    popq    %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size   arch_call_on, . - arch_call_on
    .section .note.GNU-stack, "", @progbits
