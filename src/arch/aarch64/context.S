// SPDX-License-Identifier: Apache-2.0
// See arch_context.h. A unit's outermost frame has no return address to unwind to, and a null frame pointer: unwinders,
// debuggers and profilers stop.

    .macro saved_pair first, second, at
    .cfi_rel_offset \first, \at
    .cfi_rel_offset \second, \at + 8
    .endm

    .macro save_registers
    stp     x29, x30, [sp, #-176]!
    .cfi_adjust_cfa_offset 176
    saved_pair x29, x30, 0
    stp     x19, x20, [sp, #16]
    saved_pair x19, x20, 16
    stp     x21, x22, [sp, #32]
    saved_pair x21, x22, 32
    stp     x23, x24, [sp, #48]
    saved_pair x23, x24, 48
    stp     x25, x26, [sp, #64]
    saved_pair x25, x26, 64
    stp     x27, x28, [sp, #80]
    saved_pair x27, x28, 80
    stp     d8, d9, [sp, #96]
    saved_pair d8, d9, 96
    stp     d10, d11, [sp, #112]
    saved_pair d10, d11, 112
    stp     d12, d13, [sp, #128]
    saved_pair d12, d13, 128
    stp     d14, d15, [sp, #144]
    saved_pair d14, d15, 144
    .endm

    .macro save_frame
    save_registers
    mrs     x9, fpcr
    str     x9, [sp, #160]
    .endm

// Writing FPCR empties the pipeline of many CPUs, reading it does not: so it is only written when it differs.
    .macro resume_frame
    mrs     x9, fpcr
    ldr     x10, [sp, #160]
    cmp     x9, x10
    b.eq    7f
    msr     fpcr, x10
7:  ldp     d14, d15, [sp, #144]
    ldp     d12, d13, [sp, #128]
    ldp     d10, d11, [sp, #112]
    ldp     d8, d9, [sp, #96]
    ldp     x27, x28, [sp, #80]
    ldp     x25, x26, [sp, #64]
    ldp     x23, x24, [sp, #48]
    ldp     x21, x22, [sp, #32]
    ldp     x19, x20, [sp, #16]
    ldp     x29, x30, [sp], #176
    ret
    .endm

// The unit whose saved stack pointer \sp is may be resumed by others from here on. A release: x86 orders stores by itself,
// here whichever worker reads the pointer must be made to see the frame, and all else that was written before.
    .macro publish_sp sp, save
    stlr    \sp, [\save]
    .endm

// To the stack of the unit that \unit points to, once it has left its CPU: an acquire, which pairs with publish_sp, or
// with the plain store of a frame that this kernel thread has just made. Uses x9. For a unit that has ended: until then the
// worker stands on the stack of that, which lies in its own magazine (sched/end.c) and is given to no other thread.
    .macro wait_and_take unit
8:  ldar    x9, [\unit]
    cbz     x9, 9f
    .subsection 1
9:  yield
    b       8b
    .previous
    mov     sp, x9
    .endm

    .text
    .p2align 4
    .globl  arch_switch
    .hidden arch_switch
    .type   arch_switch, %function
arch_switch:                            // (x0: save, x1: next)
    .cfi_startproc
    save_frame
3:  ldar    x10, [x1]                   // mostly it has left its CPU; pairs with publish_sp, as below
    cbz     x10, 6f
    mov     x9, sp
    mov     sp, x10                     // a frame of the same form: the call frame information stays right
    publish_sp x9, x0
5:  resume_frame

    .subsection 1
6:  mov     x9, sp
    adrp    x10, :gottprel:thrum_worker
    ldr     x10, [x10, :gottprel_lo12:thrum_worker]
    mrs     x11, tpidr_el0
    ldr     x10, [x11, x10]
    ldr     x10, [x10]                  // its own loop (worker.h: `aside` comes first)
    cmp     x10, x0
    b.eq    8f                          // it leaves itself: no other worker stands there
    ldr     x10, [x10]
    mov     sp, x10                     // again a frame of the same form
8:  publish_sp x9, x0
9:  ldar    x10, [x1]
    cbnz    x10, 4f
    yield
    b       9b
4:  mov     sp, x10
    b       5b
    .previous
    .cfi_endproc
    .size   arch_switch, . - arch_switch

    .p2align 4
    .globl  arch_switch_rest
    .hidden arch_switch_rest
    .type   arch_switch_rest, %function
arch_switch_rest:                       // (x0: save, x1: next, x2: control)
    .cfi_startproc
    save_registers
    str     x2, [sp, #160]
    b       3b
    .cfi_endproc
    .size   arch_switch_rest, . - arch_switch_rest

    .p2align 4
    .globl  arch_call
    .hidden arch_call
    .type   arch_call, %function
arch_call:                              // (x0: child, x1: parent, x2: save, x3: top)
    .cfi_startproc
    save_frame
    mov     x9, sp
    mov     sp, x3
    .cfi_remember_state
    .cfi_undefined x30
    publish_sp x9, x2
    mov     x29, xzr
    bl      unit_main
    wait_and_take x0                    // unit_main returned the next unit
    .cfi_restore_state
    resume_frame
    .cfi_endproc
    .size   arch_call, . - arch_call

    .p2align 4
    .globl  arch_begin
    .hidden arch_begin
    .type   arch_begin, %function
arch_begin:                             // x19: the unit (arch_frame_make); x29 is null
    .cfi_startproc
    .cfi_undefined x30
    mov     x0, x19
    mov     x1, xzr
    bl      unit_main
    wait_and_take x0
    resume_frame
    .cfi_endproc
    .size   arch_begin, . - arch_begin

    .p2align 4
    .globl  arch_end
    .hidden arch_end
    .type   arch_end, %function
arch_end:                               // (x0: unit, x1: top); what was on the stack is gone
    .cfi_startproc
    .cfi_undefined x30
    mov     sp, x1
    mov     x29, xzr
    bl      unit_ended
    wait_and_take x0
    resume_frame
    .cfi_endproc
    .size   arch_end, . - arch_end

    .section .note.GNU-stack, "", %progbits
