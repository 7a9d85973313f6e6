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
    .size vfork, . - vfork
    .size dlopen, dlmopen - dlopen
    .size dlmopen, . - dlmopen
    .section .note.GNU-stack, "", %progbits
