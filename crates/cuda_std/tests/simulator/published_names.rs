//! Every public name of the published `cuda_std` 0.2.2, and of the main branch what came after it,
//! is there, but for those that the documentation of the crate lists.

#![expect(unused_imports, reason = "that they can be imported is the test")]

use cuda_std::atomic::mid::{block_thread_fence, device_thread_fence, system_thread_fence};
use cuda_std::atomic::{
    AtomicF32, AtomicF64, BlockAtomicF32, BlockAtomicF64, SystemAtomicF32, SystemAtomicF64,
};
use cuda_std::cfg::ComputeCapability;
use cuda_std::float::GpuFloat as _;
use cuda_std::intrinsics::{
    abs, acos, acosf, acosh, acoshf, asin, asinf, asinh, asinhf, atan, atan2, atan2f, atanf, atanh,
    atanhf, brev, brevll, byte_perm, cbrt, cbrtf, ceil, ceilf, clz, clzll, copysign, copysignf,
    cos, cosf, cosh, coshf, cospi, cospif, dadd_rd, dadd_rn, dadd_ru, dadd_rz, ddiv_rd, ddiv_rn,
    ddiv_ru, ddiv_rz, dmul_rd, dmul_rn, dmul_ru, dmul_rz, double_as_longlong, double2float_rd,
    double2float_rn, double2float_ru, double2float_rz, double2hiint, double2int_rd, double2int_rn,
    double2int_ru, double2int_rz, double2ll_rd, double2ll_rn, double2ll_ru, double2ll_rz,
    double2loint, double2uint_rd, double2uint_rn, double2uint_ru, double2uint_rz, double2ull_rd,
    double2ull_rn, double2ull_ru, double2ull_rz, drcp_rd, drcp_rn, drcp_ru, drcp_rz, dsqrt_rd,
    dsqrt_rn, dsqrt_ru, dsqrt_rz, erf, erfc, erfcf, erfcinv, erfcinvf, erfcx, erfcxf, erff, erfinv,
    erfinvf, exp, exp2, exp2f, exp10, exp10f, expf, expm1, expm1f, fabs, fabsf, fadd_rd, fadd_rn,
    fadd_ru, fadd_rz, fast_cosf, fast_exp10f, fast_expf, fast_fdividef, fast_log2f, fast_log10f,
    fast_logf, fast_powf, fast_sincosf, fast_sinf, fast_tanf, fdim, fdimf, fdiv_rd, fdiv_rn,
    fdiv_ru, fdiv_rz, ffs, ffsll, finitef, float_as_int, float2int_rd, float2int_rn, float2int_ru,
    float2int_rz, float2ll_rd, float2ll_rn, float2ll_ru, float2ll_rz, float2uint_rd, float2uint_rn,
    float2uint_ru, float2uint_rz, float2ull_rd, float2ull_rn, float2ull_ru, float2ull_rz, floor,
    floorf, fma, fma_rd, fma_rn, fma_ru, fma_rz, fmaf, fmaf_rd, fmaf_rn, fmaf_ru, fmaf_rz, fmax,
    fmaxf, fmin, fminf, fmod, fmodf, fmul_rd, fmul_rn, fmul_ru, fmul_rz, frcp_rd, frcp_rn, frcp_ru,
    frcp_rz, frexp, frexpf, frsqrt_rn, fsqrt_rd, fsqrt_rn, fsqrt_ru, fsqrt_rz, fsub_rd, fsub_rn,
    fsub_ru, fsub_rz, hadd, hiloint2double, hypot, hypotf, ilogb, ilogbf, int_as_float,
    int2double_rn, int2float_rd, int2float_rn, int2float_ru, int2float_rz, isfinited, isinfd,
    isinff, isnand, isnanf, j0, j0f, j1, j1f, jn, jnf, ldexp, ldexpf, lgamma, lgammaf,
    ll2double_rd, ll2double_rn, ll2double_ru, ll2double_rz, ll2float_rd, ll2float_rn, ll2float_ru,
    ll2float_rz, llabs, llmax, llmin, llrint, llrintf, llround, llroundf, log, log1p, log1pf, log2,
    log2f, log10, log10f, logb, logbf, logf, longlong_as_double, max, min, modf, modff, mul24,
    mul64hi, mulhi, nearbyint, nearbyintf, nextafter, nextafterf, normcdf, normcdff, normcdfinv,
    normcdfinvf, popc, popcll, pow, powf, powi, powif, rcbrt, rcbrtf, remainder, remainderf,
    remquo, remquof, rhadd, rint, rintf, round, roundf, rsqrt, rsqrtf, sad, saturatef, scalbn,
    scalbnf, signbitd, signbitf, sin, sincos, sincosf, sincospi, sincospif, sinf, sinh, sinhf,
    sinpi, sinpif, sqrt, sqrtf, tan, tanf, tanh, tanhf, tgamma, tgammaf, trunc, truncf, uhadd,
    uint2double_rn, uint2float_rd, uint2float_rn, uint2float_ru, uint2float_rz, ull2double_rd,
    ull2double_rn, ull2double_ru, ull2double_rz, ull2float_rd, ull2float_rn, ull2float_ru,
    ull2float_rz, ullmax, ullmin, umax, umin, umul24, umul64hi, umulhi, urhadd, usad, y0, y0f, y1,
    y1f, yn, ynf,
};
use cuda_std::io::{__assertfail, vprintf};
use cuda_std::mem::{
    CUDAAllocator, GLOBAL_ALLOCATOR, dynamic_smem_size, free, malloc, total_smem_size,
};
use cuda_std::misc::{breakpoint, clock, profiler_counter};
use cuda_std::prelude::{Box, Rc, String, ToOwned, ToString, Vec, kernel, thread as _};
use cuda_std::ptr::{
    AddressSpace, convert_generic_to_specific_address_space,
    convert_specific_address_space_to_generic, is_in_address_space,
};
use cuda_std::shared::dynamic_shared_mem;
use cuda_std::thread::{
    block_dim, block_dim_x, block_dim_y, block_dim_z, block_idx, block_idx_x, block_idx_y,
    block_idx_z, device_fence, first, grid_dim, grid_dim_x, grid_dim_y, grid_dim_z, grid_fence,
    index, index_1d, index_2d, index_3d, nanosleep, sync_threads, sync_threads_and,
    sync_threads_count, sync_threads_or, system_fence, thread_idx, thread_idx_x, thread_idx_y,
    thread_idx_z, warp_size,
};
use cuda_std::warp::{
    WarpMatchValue, WarpReduceValue, WarpReductionOp, WarpShuffleValue, activemask, lane_id,
    sync_warp, warp_match_all, warp_match_any, warp_reduce, warp_shuffle_down, warp_shuffle_idx,
    warp_shuffle_up, warp_shuffle_xor, warp_vote_all, warp_vote_any, warp_vote_ballot,
};
use cuda_std::{
    FloatExt, GpuFloat, address_space, assert_eq as _, assert_ne as _, externally_visible,
    gpu_only, print, println, shared_array,
};
