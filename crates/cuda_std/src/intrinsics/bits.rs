//! What kind of float it is, and floats as bits.

libdevice! {
    /// Not 0 if `x` is neither infinite nor NaN.
    fn isfinited(x: f64) -> i32 { x.is_finite().into() }
    /// Not 0 if `x` is neither infinite nor NaN.
    fn finitef(x: f32) -> i32 { x.is_finite().into() }
    /// Not 0 if `x` is infinite.
    fn isinfd(x: f64) -> i32 { x.is_infinite().into() }
    /// Not 0 if `x` is infinite.
    fn isinff(x: f32) -> i32 { x.is_infinite().into() }
    /// Not 0 if `x` is NaN.
    fn isnand(x: f64) -> i32 { x.is_nan().into() }
    /// Not 0 if `x` is NaN.
    fn isnanf(x: f32) -> i32 { x.is_nan().into() }
    /// Not 0 if the sign of `x` is negative.
    fn signbitd(x: f64) -> i32 { x.is_sign_negative().into() }
    /// Not 0 if the sign of `x` is negative.
    fn signbitf(x: f32) -> i32 { x.is_sign_negative().into() }

    /// The exponent of `x` to base 2.
    fn ilogb(x: f64) -> i32 { libm::ilogb(x) }
    /// The exponent of `x` to base 2.
    fn ilogbf(x: f32) -> i32 { libm::ilogbf(x) }
    /// The nearest whole number, halves to the even one.
    fn llrint(x: f64) -> i64 { x.round_ties_even() as i64 }
    /// The nearest whole number, halves to the even one.
    fn llrintf(x: f32) -> i64 { x.round_ties_even() as i64 }
    /// The nearest whole number, halves away from zero.
    fn llround(x: f64) -> i64 { x.round() as i64 }
    /// The nearest whole number, halves away from zero.
    fn llroundf(x: f32) -> i64 { x.round() as i64 }

    /// The upper 32 bits of `x`.
    fn double2hiint(x: f64) -> i32 { (x.to_bits() >> 32) as i32 }
    /// The lower 32 bits of `x`.
    fn double2loint(x: f64) -> i32 { x.to_bits() as i32 }
    /// The double of these upper and lower 32 bits.
    fn hiloint2double(high: i32, low: i32) -> f64 {
        f64::from_bits(u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned()))
    }
    /// The bits of `x`.
    fn double_as_longlong(x: f64) -> i64 { x.to_bits().cast_signed() }
    /// The double of these bits.
    fn longlong_as_double(x: i64) -> f64 { f64::from_bits(x.cast_unsigned()) }
    /// The bits of `x`.
    fn float_as_int(x: f32) -> i32 { x.to_bits().cast_signed() }
    /// The float of these bits.
    fn int_as_float(x: i32) -> f32 { f32::from_bits(x.cast_unsigned()) }
}
