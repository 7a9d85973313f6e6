// SPDX-License-Identifier: Apache-2.0
// Calls that must not have a frame of ours under their caller.
//
// vfork: the child runs in its parent's frames and returns first, which would overwrite such a frame's return
// address. The system call is made here, so that it can be made again when idle threads were in the way of a
// limit (cache/process.c).
//
// dlopen, dlmopen: libc searches along the path of the library that the call returns to (cache/loader.c).
    .text

    .globl vfork
    .type vfork, %function
    .globl dlopen
    .type dlopen, %function
    .globl dlmopen
    .type dlmopen, %function

vfork:
    .cfi_startproc
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    bl cache_before_vfork
1:  ldp x29, x30, [sp], #16
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    mov x0, #0x4111                 // CLONE_VFORK | CLONE_VM | SIGCHLD
    mov x1, #0
    mov x2, #0
    mov x3, #0
    mov x4, #0
    mov x8, #220                    // SYS_clone; x30 survives it in both processes
    svc #0
    cmn x0, #4095
    b.cs 2f
    ret
2:  stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    bl cache_vfork_failed
    tbnz w0, #0, 1b
    ldp x29, x30, [sp], #16
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    mov w0, #-1
    ret
    .cfi_endproc

dlopen:
    .cfi_startproc
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    stp x0, x1, [sp, #16]
    mov w0, w1
    bl cache_before_dlopen
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc

dlmopen:
    .cfi_startproc
    stp x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset x29, -48
    .cfi_offset x30, -40
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    bl cache_before_dlmopen
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size vfork, . - vfork
    .size dlopen, dlmopen - dlopen
    .size dlmopen, . - dlmopen
    .section .note.GNU-stack, "", %progbits
