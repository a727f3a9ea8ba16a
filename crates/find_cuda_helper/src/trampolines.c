/* Trampolines to the CUDA driver: each function of libcuda under its own name, and no libcuda needed to link or
   to start. The library is opened at the first call of any function, and a function is looked up at its own
   first call, as the dynamic linker does it for a library that was linked:

       caller              trampoline                  slot_cuInit
         |  call cuInit  ->  cuInit: jmp *slot_cuInit -> +-- first_cuInit, before the first call
         |                                               +-- cuInit of libcuda.so.1, from then on
         |
         |                 first_cuInit: push its index; jmp resolve_and_call
         |                 resolve_and_call: keep the arguments; slot = resolve(index); jmp *slot

   Threads may get to a first call at the same time: they look up, and write to the slot, the same address.

   Without the driver a slot gets the address of a function that returns an error code. cuda_symbols.h has one
   line SYMBOL(index, name) for each function. */

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* Of CUresult. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
};

/* What a slot holds. Its true type is that of the function of its name. */
typedef void (*address)(void);

enum {
#define SYMBOL(index, name) INDEX_##name = index,
#include "cuda_symbols.h"
#undef SYMBOL
};

static const char *const names[] = {
#define SYMBOL(index, name) [index] = #name,
#include "cuda_symbols.h"
#undef SYMBOL
};

#define SYMBOL(index, name)                                                                                       \
    void find_cuda_helper_first_##name(void) __attribute__((visibility("hidden")));                               \
    __attribute__((visibility("hidden"))) address find_cuda_helper_slot_##name = find_cuda_helper_first_##name;
#include "cuda_symbols.h"
#undef SYMBOL

static address *const slots[] = {
#define SYMBOL(index, name) [index] = &find_cuda_helper_slot_##name,
#include "cuda_symbols.h"
#undef SYMBOL
};

static int no_driver(void) {
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

static int no_such_function(void) {
    return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

/* What stands in for cuGetErrorString and cuGetErrorName, which have to be able to say what is missing. */

static int error_string(int error, const char **text) {
    switch (error) {
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
        *text = "the NVIDIA driver is not installed, or its library libcuda.so.1 cannot be loaded";
        break;
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
        *text = "the NVIDIA driver is too old: its library libcuda.so.1 lacks a function that is needed";
        break;
    default:
        *text = "an error of the NVIDIA driver, which is not there to put it into words";
        break;
    }
    return CUDA_SUCCESS;
}

static int error_name(int error, const char **text) {
    switch (error) {
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
        *text = "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED";
        break;
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
        *text = "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND";
        break;
    default:
        *text = "CUDA_ERROR_UNKNOWN";
        break;
    }
    return CUDA_SUCCESS;
}

static void *driver;

static void open_driver(void) {
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* Looks a function up, writes its address to its slot and returns it. */
__attribute__((visibility("hidden"), used)) address find_cuda_helper_resolve(unsigned long index) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);

    address found = driver != NULL ? (address)dlsym(driver, names[index]) : NULL;
    if (found == NULL) {
        switch (index) {
        case INDEX_cuGetErrorString:
            found = (address)error_string;
            break;
        case INDEX_cuGetErrorName:
            found = (address)error_name;
            break;
        default:
            found = driver != NULL ? (address)no_such_function : (address)no_driver;
            break;
        }
    }
    __atomic_store_n(slots[index], found, __ATOMIC_RELEASE);
    return found;
}

/* The arguments may be in any of the registers that the System V ABI for x86-64 passes them in, and on the stack,
   which is left as it is. On entry the stack holds the index, and below it the return address to the caller. */
__asm__(".pushsection .text\n"
        "find_cuda_helper_resolve_and_call:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    sub $184, %rsp\n" /* 6 * 8 + 8 * 16, and 8 that align the stack to 16 */
        "    mov %rdi, 0(%rsp)\n"
        "    mov %rsi, 8(%rsp)\n"
        "    mov %rdx, 16(%rsp)\n"
        "    mov %rcx, 24(%rsp)\n"
        "    mov %r8, 32(%rsp)\n"
        "    mov %r9, 40(%rsp)\n"
        "    movups %xmm0, 48(%rsp)\n"
        "    movups %xmm1, 64(%rsp)\n"
        "    movups %xmm2, 80(%rsp)\n"
        "    movups %xmm3, 96(%rsp)\n"
        "    movups %xmm4, 112(%rsp)\n"
        "    movups %xmm5, 128(%rsp)\n"
        "    movups %xmm6, 144(%rsp)\n"
        "    movups %xmm7, 160(%rsp)\n"
        "    mov 8(%rbp), %rdi\n" /* the index */
        "    call find_cuda_helper_resolve\n"
        "    mov %rax, %r11\n"
        "    mov 0(%rsp), %rdi\n"
        "    mov 8(%rsp), %rsi\n"
        "    mov 16(%rsp), %rdx\n"
        "    mov 24(%rsp), %rcx\n"
        "    mov 32(%rsp), %r8\n"
        "    mov 40(%rsp), %r9\n"
        "    movups 48(%rsp), %xmm0\n"
        "    movups 64(%rsp), %xmm1\n"
        "    movups 80(%rsp), %xmm2\n"
        "    movups 96(%rsp), %xmm3\n"
        "    movups 112(%rsp), %xmm4\n"
        "    movups 128(%rsp), %xmm5\n"
        "    movups 144(%rsp), %xmm6\n"
        "    movups 160(%rsp), %xmm7\n"
        "    leave\n"
        "    add $8, %rsp\n" /* the index */
        "    jmp *%r11\n"
        ".popsection\n");

#define SYMBOL(index, name)                                                                                       \
    __asm__(".pushsection .text\n"                                                                                \
            ".globl " #name "\n"                                                                                  \
            ".type " #name ", @function\n" #name ":\n"                                                            \
            "    jmp *find_cuda_helper_slot_" #name "(%rip)\n"                                                    \
            ".globl find_cuda_helper_first_" #name "\n"                                                           \
            ".hidden find_cuda_helper_first_" #name "\n"                                                          \
            ".type find_cuda_helper_first_" #name ", @function\n"                                                 \
            "find_cuda_helper_first_" #name ":\n"                                                                 \
            "    push $" #index "\n"                                                                              \
            "    jmp find_cuda_helper_resolve_and_call\n"                                                         \
            ".popsection\n");
#include "cuda_symbols.h"
#undef SYMBOL
