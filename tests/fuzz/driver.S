// Runs COUNT sequences one after the other: each is given its state, called, and
// its final state written to descriptor 1 together with its data and stack.
//
// Macros from the command line: COUNT; VECTOR (128, 256 or 512); CODE_FILE,
// SLOT_FILE and INPUT_FILE (blobs); CODE_SIZE and COPY (the code is copied to
// anonymous memory at CODE_BASE instead of being mapped there); CODE_FLAGS.
// The layout of an input and of the output is that of state.py.

#define SLOT_SIZE 4096
#define INPUT_SIZE 2432
#define VECTORS 0
#define GPRS 2048
#define MASKS 2176
#define FLAGS 2240
#define MXCSR 2248
#define X87 2256
#define ENTRY 2368
#define SIGNAL 2368
#define SIGNAL_CODE 2376
#define SIGNAL_ADDRESS 2384
#define FRAME 2392
#define OUTPUT_SIZE 2576

#define UC_GREGS 40             // offsetof(ucontext_t, uc_mcontext.gregs)
#define REG_RIP 16
#define SA_FLAGS 0x4c000004     // SA_SIGINFO | SA_ONSTACK | SA_RESTORER | SA_NODEFER

.macro vectors move, file
#if VECTOR == 512
  .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \move vmovdqu64, %zmm\n, VECTORS + \n*64
  .endr
#elif VECTOR == 256
  .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \move vmovdqu, %ymm\n, VECTORS + \n*64
  .endr
#else
  .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \move movdqu, %xmm\n, VECTORS + \n*64
  .endr
#endif
#if VECTOR == 512
  .irp n,0,1,2,3,4,5,6,7
    \move kmovq, %k\n, MASKS + \n*8
  .endr
#endif
.endm

.macro load operation, register, offset
  \operation \offset(%rbx), \register
.endm

.macro store operation, register, offset
  \operation \register, output+\offset(%rip)
.endm

.text
.globl _start
_start:
  mov $131, %eax                // sigaltstack
  lea alternate(%rip), %rdi
  xor %esi, %esi
  syscall
  .irp number, 4, 5, 7, 8, 11   // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV
    mov $13, %eax               // rt_sigaction
    mov $\number, %edi
    lea action(%rip), %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
  .endr
#if COPY
  mov $9, %eax                  // mmap
  movabs $CODE_BASE, %rdi
  mov $CODE_SIZE, %esi
  mov $7, %edx                  // PROT_READ | PROT_WRITE | PROT_EXEC
  mov $0x32, %r10d              // MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS
  mov $-1, %r8
  xor %r9d, %r9d
  syscall
  movabs $code, %rsi
  movabs $CODE_BASE, %rdi
  mov $CODE_SIZE/8, %ecx
  rep movsq
#endif
next:
  mov index(%rip), %rax
  cmp $COUNT, %rax
  jae done
  imul $SLOT_SIZE, %rax, %rcx
  movabs $slots, %rdx
  add %rdx, %rcx
  mov %rcx, vector+16(%rip)
  imul $INPUT_SIZE, %rax, %rbx
  movabs $inputs, %rdx
  add %rdx, %rbx
  mov ENTRY(%rbx), %rax
  mov %rax, entry(%rip)
  movq $0, output+SIGNAL(%rip)
  vectors load
  frstor X87(%rbx)
  ldmxcsr MXCSR(%rbx)
  lea stack_top(%rip), %rsp
  push FLAGS(%rbx)
  mov GPRS+0*8(%rbx), %rax
  mov GPRS+1*8(%rbx), %rcx
  mov GPRS+2*8(%rbx), %rdx
  mov GPRS+5*8(%rbx), %rbp
  mov GPRS+6*8(%rbx), %rsi
  mov GPRS+7*8(%rbx), %rdi
  .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    mov GPRS+\n*8(%rbx), %r\n
  .endr
  popfq
  mov GPRS+4*8(%rbx), %rsp
  mov GPRS+3*8(%rbx), %rbx
  call *entry(%rip)
finished:
  mov %rax, output+GPRS+0*8(%rip)
  mov %rcx, output+GPRS+1*8(%rip)
  mov %rdx, output+GPRS+2*8(%rip)
  mov %rbx, output+GPRS+3*8(%rip)
  mov %rsp, output+GPRS+4*8(%rip)
  mov %rbp, output+GPRS+5*8(%rip)
  mov %rsi, output+GPRS+6*8(%rip)
  mov %rdi, output+GPRS+7*8(%rip)
  .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    mov %r\n, output+GPRS+\n*8(%rip)
  .endr
  lea stack_top(%rip), %rsp
  pushfq
  pop output+FLAGS(%rip)
  push $2
  popfq
  fnsave output+X87(%rip)
  stmxcsr output+MXCSR(%rip)
  vectors store
  mov $20, %eax                 // writev
  mov $1, %edi
  lea vector(%rip), %rsi
  mov $2, %edx
  syscall
  incq index(%rip)
  jmp next
done:
  mov $231, %eax                // exit_group
  xor %edi, %edi
  syscall

// A sequence faulted: keep what the handler was told, and end the sequence there.
handler:
  mov %rdi, output+SIGNAL(%rip)
  movslq 8(%rsi), %rax
  mov %rax, output+SIGNAL_CODE(%rip)
  mov 16(%rsi), %rax
  mov %rax, output+SIGNAL_ADDRESS(%rip)
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22
    mov UC_GREGS+\n*8(%rdx), %rax
    mov %rax, output+FRAME+\n*8(%rip)
  .endr
  lea finished(%rip), %rax
  mov %rax, UC_GREGS+REG_RIP*8(%rdx)
  ret
restorer:
  mov $15, %eax                 // rt_sigreturn
  syscall

.section .seqcode, CODE_FLAGS, @progbits
code:
  .incbin CODE_FILE
  .balign 8

.section .slots, "aw", @progbits
slots:
  .incbin SLOT_FILE

.section .rodata
.balign 64
inputs:
  .incbin INPUT_FILE

.data
.balign 8
action:
  .quad handler, SA_FLAGS, restorer, 0
alternate:
  .quad alternate_stack, 0, 65536
vector:
  .quad output, OUTPUT_SIZE, 0, SLOT_SIZE
index:
  .quad 0

.bss
.balign 64
output:
  .skip OUTPUT_SIZE
entry:
  .skip 8
alternate_stack:
  .skip 65536
.balign 64
  .skip 4096
stack_top:
