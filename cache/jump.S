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

#if defined(__x86_64__)
vfork:
    .cfi_startproc
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call cache_before_vfork
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
1:  popq %rdi                       // the child's return overwrites it on the stack; the kernel keeps %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    movl $58, %eax                  // SYS_vfork
    syscall
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -8
    cmpq $-4095, %rax
    jae 2f
    ret
2:  movq %rax, %rdi
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call cache_vfork_failed
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    testb %al, %al
    jnz 1b
    movl $-1, %eax
    ret
    .cfi_endproc

dlopen:
    .cfi_startproc
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movl %esi, %edi
    call cache_before_dlopen
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc

dlmopen:
    .cfi_startproc
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    call cache_before_dlmopen
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc

#elif defined(__aarch64__)
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
#endif
    .size vfork, . - vfork
    .size dlopen, dlmopen - dlopen
    .size dlmopen, . - dlmopen
    .section .note.GNU-stack, "", %progbits
