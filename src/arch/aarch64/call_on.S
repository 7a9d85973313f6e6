// SPDX-License-Identifier: Apache-2.0
// See arch_call_on.h.
    .text
    .p2align 2
    .globl  arch_call_on
    .hidden arch_call_on
    .type   arch_call_on, %function
arch_call_on:                           // (x0: top, x1: fn, x2: argument)
    .cfi_startproc
    stp     x29, x30, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov     x29, sp
    .cfi_def_cfa_register x29
    mov     sp, x0
    .cfi_remember_state
    .cfi_undefined x30
    mov     x0, x2
    blr     x1
    .cfi_restore_state
    mov     sp, x29
    .cfi_def_cfa_register sp
    ldp     x29, x30, [sp], #16
    .cfi_adjust_cfa_offset -16
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   arch_call_on, . - arch_call_on
    .section .note.GNU-stack, "", %progbits
