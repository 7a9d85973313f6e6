// SPDX-License-Identifier: Apache-2.0
// See arch_context.h. A unit's outermost frame has no return address to unwind to: unwinders and debuggers stop.

    .macro save_registers
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq   %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq   %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq   %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq   %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq   %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    .endm

    .macro save_frame
    save_registers
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    stmxcsr (%rsp)
    fnstcw  4(%rsp)
    .endm

// The stack pointer is at a frame that save_frame has made, on whichever stack.
    .macro at_frame
    .cfi_def_cfa %rsp, 64
    .cfi_offset %rip, -8
    .cfi_offset %rbp, -16
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    .cfi_offset %r14, -48
    .cfi_offset %r15, -56
    .endm

    .macro restore register, left
    popq    %\register
    .cfi_def_cfa_offset \left
    .cfi_restore %\register
    .endm

    .macro restore_registers
    ldmxcsr (%rsp)
    fldcw   4(%rsp)
    addq    $8, %rsp
    .cfi_def_cfa_offset 56
    restore r15, 48
    restore r14, 40
    restore r13, 32
    restore r12, 24
    restore rbx, 16
    restore rbp, 8
    .endm

    .macro resume_frame
    restore_registers
    ret
    .endm

// To the stack of the unit that \unit points to, once it has left its CPU. Uses rcx. For a unit that has ended: until then
// the worker stands on the stack of that, which lies in its own magazine (sched/end.c) and is given to no other thread.
    .macro wait_and_take unit
8:  movq    (\unit), %rcx
    testq   %rcx, %rcx
    jz      9f
    .subsection 1
9:  pause
    jmp     8b
    .previous
    movq    %rcx, %rsp
    at_frame
    .endm

// To rcx, in a way that the CPU predicts (arch_return.h). Uses edx.
    .macro return_by_jump
    imull   $0x9e3779b1, %ecx, %edx
    .rept 3
    addl    %edx, %edx
    jc      9f
9:
    .endr
    jmp     *%rcx
    .endm

    .text
    .p2align 4
    .globl  arch_switch
    .hidden arch_switch
    .type   arch_switch, @function
arch_switch:                            // (rdi: save, rsi: next)
    .cfi_startproc
    save_frame
4:  movq    (%rsi), %rcx                // mostly it has left its CPU
    testq   %rcx, %rcx
    jz      6f
    movq    %rsp, %rdx
    movq    %rcx, %rsp                  // a frame of the same form: the call frame information stays right
    movq    %rdx, (%rdi)                // from here on others may resume the unit that was left
5:  resume_frame

    .cfi_endproc
    .subsection 1
    .cfi_startproc
    at_frame
6:  movq    %rsp, %rdx
    movq    thrum_worker@gottpoff(%rip), %rax
    movq    %fs:(%rax), %rax
    movq    (%rax), %rax                // its own loop (worker.h: `aside` comes first)
    cmpq    %rax, %rdi
    je      7f                          // it leaves itself: no other worker stands there
    movq    (%rax), %rsp                // again a frame of the same form
7:  movq    %rdx, (%rdi)
8:  movq    (%rsi), %rcx
    testq   %rcx, %rcx
    jnz     9f
    pause
    jmp     8b
9:  movq    %rcx, %rsp
    jmp     5b
    .cfi_endproc
    .previous
    .size   arch_switch, . - arch_switch

    .p2align 4
    .globl  arch_switch_rest
    .hidden arch_switch_rest
    .type   arch_switch_rest, @function
arch_switch_rest:                       // (rdi: save, rsi: next, rdx: control); reached by a jump
    .cfi_startproc
    save_registers
    pushq   %rdx                        // an arch_frame's mxcsr and fpucw
    .cfi_adjust_cfa_offset 8
    jmp     4b
    .cfi_endproc
    .size   arch_switch_rest, . - arch_switch_rest

    .p2align 4
    .globl  arch_switch_begin
    .hidden arch_switch_begin
    .type   arch_switch_begin, @function
arch_switch_begin:                      // (rdi: save, rsi: next)
    .cfi_startproc
    save_frame
    movq    (%rsi), %rcx
    testq   %rcx, %rcx
    jz      6b
    movq    %rsp, %rdx
    movq    %rcx, %rsp
    movq    %rdx, (%rdi)                // as in arch_switch
    restore_registers
    popq    %rcx
    .cfi_def_cfa_offset 0
    .cfi_register %rip, %rcx
    jmp     *%rcx
    .cfi_endproc
    .size   arch_switch_begin, . - arch_switch_begin

// As arch_switch, for a unit that leaves in a function of its caller's that this was reached from by a jump: when it is resumed, it
// leaves the region that it is in (sched/current.h), and returns 0 from that function. How it returns: arch_return.h.
    .p2align 4
    .globl  arch_switch_and_return
    .hidden arch_switch_and_return
    .type   arch_switch_and_return, @function
arch_switch_and_return:                 // (rdi: save, rsi: next, whose registers are saved)
    .cfi_startproc
    leaq    1f(%rip), %rax
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    save_frame
    movq    64(%rsp), %r9               // where it was called from
    movq    (%rsi), %rcx
    movq    %rsp, %rdx
    movq    %rcx, %rsp                  // a frame of the form of all the others, whose address to resume at may be 1
    at_frame
    movq    %rdx, (%rdi)                // as in arch_switch
    restore_registers
    popq    %rcx
    .cfi_def_cfa_offset 0
    .cfi_register %rip, %rcx
    cmpq    %rax, %rcx
    jne     2f
    .cfi_def_cfa_offset 8
    .cfi_offset %rip, -8
    nop                                 // unwinders look up what is before a return address
1:  movq    thrum_nopreempt@gottpoff(%rip), %rax // here also from the other switches: then r9 is anything
    decl    %fs:(%rax)
    jz      3f
4:  xorl    %eax, %eax
    cmpq    %r9, (%rsp)
    jne     5f
    ret
3:  pushq   %r9
    .cfi_adjust_cfa_offset 8
    call    preempt_pending
    popq    %r9
    .cfi_adjust_cfa_offset -8
    jmp     4b
5:  popq    %rcx
    .cfi_def_cfa_offset 0
    .cfi_register %rip, %rcx
    return_by_jump
2:  jmp     *%rcx
    .cfi_endproc
    .size   arch_switch_and_return, . - arch_switch_and_return

    .p2align 4
    .globl  arch_call
    .hidden arch_call
    .type   arch_call, @function
arch_call:                              // (rdi: child, rsi: parent, rdx: save, rcx: top)
    .cfi_startproc
    save_frame
    movq    %rsp, %rax
    movq    %rcx, %rsp
    .cfi_undefined %rip
    movq    %rax, (%rdx)                // from here on others may resume the caller
    call    unit_main
    wait_and_take %rax                  // unit_main returned the next unit
    resume_frame
    .cfi_endproc
    .size   arch_call, . - arch_call

    .p2align 4
    .globl  arch_begin
    .hidden arch_begin
    .type   arch_begin, @function
arch_begin:                             // rbx: the unit (arch_frame_make); the stack is 16-aligned here
    .cfi_startproc
    .cfi_undefined %rip
    movq    %rbx, %rdi
    xorl    %esi, %esi
    call    unit_main
    wait_and_take %rax
    resume_frame
    .cfi_endproc
    .size   arch_begin, . - arch_begin

    .p2align 4
    .globl  arch_end
    .hidden arch_end
    .type   arch_end, @function
arch_end:                               // (rdi: unit, rsi: top); what was on the stack is gone
    .cfi_startproc
    .cfi_undefined %rip
    movq    %rsi, %rsp
    call    unit_ended
    wait_and_take %rax
    resume_frame
    .cfi_endproc
    .size   arch_end, . - arch_end

    .section .note.GNU-stack, "", @progbits
