//! Arithmetic and conversions in each of the four roundings.

#[cfg(not(cuda_device))]
use super::rounding::{self, Direction::*, Sum};

/// Defines an operation in the roundings to nearest, toward zero, up and down. The body is the
/// simulator's: the nearest number, and on which side of it the exact one is.
macro_rules! in_each_rounding {
    ($(
        $(#[$doc:meta])*
        $nearest:ident $zero:ident $up:ident $down:ident($($argument:ident: $ty:ty),*) -> $result:ty $body:block
    )*) => {
        libdevice! {
            $(
                $(#[$doc])*
                /// Rounds to nearest.
                fn $nearest($($argument: $ty),*) -> $result { $body.to(Nearest) }
                $(#[$doc])*
                /// Rounds toward zero.
                fn $zero($($argument: $ty),*) -> $result { $body.to(Zero) }
                $(#[$doc])*
                /// Rounds up.
                fn $up($($argument: $ty),*) -> $result { $body.to(Up) }
                $(#[$doc])*
                /// Rounds down.
                fn $down($($argument: $ty),*) -> $result { $body.to(Down) }
            )*
        }
    };
}

in_each_rounding! {
    /// `x + y`.
    dadd_rn dadd_rz dadd_ru dadd_rd(x: f64, y: f64) -> f64 { rounding::add(x, y) }
    /// `x * y`.
    dmul_rn dmul_rz dmul_ru dmul_rd(x: f64, y: f64) -> f64 { rounding::multiply(x, y) }
    /// `x / y`.
    ddiv_rn ddiv_rz ddiv_ru ddiv_rd(x: f64, y: f64) -> f64 { rounding::divide(x, y) }
    /// The reciprocal.
    drcp_rn drcp_rz drcp_ru drcp_rd(x: f64) -> f64 { rounding::divide(1.0, x) }
    /// The square root.
    dsqrt_rn dsqrt_rz dsqrt_ru dsqrt_rd(x: f64) -> f64 { rounding::square_root(x) }
    /// `x * y + z`.
    fma_rn fma_rz fma_ru fma_rd(x: f64, y: f64, z: f64) -> f64 { rounding::multiply_add(x, y, z) }

    /// `x + y`.
    fadd_rn fadd_rz fadd_ru fadd_rd(x: f32, y: f32) -> f32 {
        Sum::of(x.into(), y.into()).rounded(x + y)
    }
    /// `x - y`.
    fsub_rn fsub_rz fsub_ru fsub_rd(x: f32, y: f32) -> f32 {
        Sum::of(x.into(), (-y).into()).rounded(x - y)
    }
    /// `x * y`.
    fmul_rn fmul_rz fmul_ru fmul_rd(x: f32, y: f32) -> f32 {
        Sum::exact(f64::from(x) * f64::from(y)).rounded(x * y)
    }
    /// `x / y`.
    fdiv_rn fdiv_rz fdiv_ru fdiv_rd(x: f32, y: f32) -> f32 { rounding::divide_single(x, y) }
    /// The reciprocal.
    frcp_rn frcp_rz frcp_ru frcp_rd(x: f32) -> f32 { rounding::divide_single(1.0, x) }
    /// The square root.
    fsqrt_rn fsqrt_rz fsqrt_ru fsqrt_rd(x: f32) -> f32 { rounding::square_root_single(x) }
    /// `x * y + z`.
    fmaf_rn fmaf_rz fmaf_ru fmaf_rd(x: f32, y: f32, z: f32) -> f32 {
        Sum::of(f64::from(x) * f64::from(y), z.into()).rounded(x.mul_add(y, z))
    }

    /// As `f32`.
    double2float_rn double2float_rz double2float_ru double2float_rd(x: f64) -> f32 {
        Sum::exact(x).rounded(x as f32)
    }
    /// As `f32`.
    int2float_rn int2float_rz int2float_ru int2float_rd(x: i32) -> f32 {
        Sum::exact(x.into()).rounded(x as f32)
    }
    /// As `f32`.
    uint2float_rn uint2float_rz uint2float_ru uint2float_rd(x: i32) -> f32 {
        let x = x.cast_unsigned();
        Sum::exact(x.into()).rounded(x as f32)
    }
    /// As `f32`.
    ll2float_rn ll2float_rz ll2float_ru ll2float_rd(x: i64) -> f32 {
        Sum::of_integer(x.into()).rounded(x as f32)
    }
    /// As `f32`.
    ull2float_rn ull2float_rz ull2float_ru ull2float_rd(x: i64) -> f32 {
        let x = x.cast_unsigned();
        Sum::of_integer(x.into()).rounded(x as f32)
    }
    /// As `f64`.
    ll2double_rn ll2double_rz ll2double_ru ll2double_rd(x: i64) -> f64 {
        rounding::of_integer(x.into())
    }
    /// As `f64`.
    ull2double_rn ull2double_rz ull2double_ru ull2double_rd(x: i64) -> f64 {
        rounding::of_integer(x.cast_unsigned().into())
    }
}

libdevice! {
    /// As `f64`, which is exact.
    fn int2double_rn(x: i32) -> f64 { x.into() }
    /// As `f64`, which is exact.
    fn uint2double_rn(x: i32) -> f64 { x.cast_unsigned().into() }
    /// The reciprocal of the square root, rounded to nearest.
    fn frsqrt_rn(x: f32) -> f32 { (1.0 / f64::from(x).sqrt()) as f32 }
}

/// Defines the conversions of a float to an integer, which saturate. `$nan` is what NaN becomes.
macro_rules! to_integers {
    ($($nearest:ident $zero:ident $up:ident $down:ident($float:ty) -> $integer:ty as $result:ty, $nan:expr;)*) => {
        libdevice! {
            $(
                /// The nearest integer, halves to the even one.
                fn $nearest(x: $float) -> $result {
                    if x.is_nan() { $nan } else { x.round_ties_even() as $integer as $result }
                }
                /// The next integer toward zero.
                fn $zero(x: $float) -> $result {
                    if x.is_nan() { $nan } else { x as $integer as $result }
                }
                /// The next integer upward.
                fn $up(x: $float) -> $result {
                    if x.is_nan() { $nan } else { x.ceil() as $integer as $result }
                }
                /// The next integer downward.
                fn $down(x: $float) -> $result {
                    if x.is_nan() { $nan } else { x.floor() as $integer as $result }
                }
            )*
        }
    };
}

to_integers! {
    float2int_rn float2int_rz float2int_ru float2int_rd(f32) -> i32 as i32, 0;
    float2uint_rn float2uint_rz float2uint_ru float2uint_rd(f32) -> u32 as i32, 0;
    float2ll_rn float2ll_rz float2ll_ru float2ll_rd(f32) -> i64 as i64, i64::MIN;
    float2ull_rn float2ull_rz float2ull_ru float2ull_rd(f32) -> u64 as i64, i64::MIN;
    double2int_rn double2int_rz double2int_ru double2int_rd(f64) -> i32 as i32, i32::MIN;
    double2uint_rn double2uint_rz double2uint_ru double2uint_rd(f64) -> u32 as i32, i32::MIN;
    double2ll_rn double2ll_rz double2ll_ru double2ll_rd(f64) -> i64 as i64, i64::MIN;
    double2ull_rn double2ull_rz double2ull_ru double2ull_rd(f64) -> u64 as i64, i64::MIN;
}
