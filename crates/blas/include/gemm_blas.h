/* libgemm_blas.so multiplies in place of cuBLAS:
 *
 *     LD_PRELOAD=/path/to/libgemm_blas.so python train.py
 *
 * It has cuBLAS's names, and needs no header: a program is compiled with cublas_v2.h, as always.
 * The environment, read at the first call:
 *
 *   GEMM_BLAS_MATH       ieee (default), tf32 or split: how f32 is multiplied where the program
 *                        does not allow more. split has the error of f32, on tensor cores.
 *   GEMM_BLAS_LOG        a file, or - for the standard error: a line for each call, and the
 *                        numbers of calls by what became of them at the end.
 *   GEMM_BLAS_CHECK      N: every N-th product is checked on the GPU, which waits for it. A wrong
 *                        one ends the process with its shape.
 *   GEMM_BLAS_TAKE       faster (default): what is faster than cuBLAS; all: whatever is possible;
 *                        none.
 *   GEMM_BLAS_CAPTURE    safe (default): CUDA graphs get no products that use the workspace of the
 *                        stream they are captured on; all: they do, and no two graphs of one
 *                        stream run at the same time, nor that stream beside them.
 *   GEMM_BLAS_WORKSPACE  MiB for each stream: 320, or 640 with split.
 *
 * The function below is of this library alone: look it up by dlsym.
 */
#ifndef GEMM_BLAS_H
#define GEMM_BLAS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of calls so far that were multiplied here, and that were passed on to cuBLAS. Either
 * pointer may be null. */
void gemm_blas_calls(uint64_t *multiplied, uint64_t *passed_on);

#ifdef __cplusplus
}
#endif

#endif
