//! Mathematical functions.

#[cfg(not(cuda_device))]
use super::simulated::{self, cos_pi, sin_pi};

for_both_types! {
    /// The angle in radians whose cosine is `x`.
    acos acosf(x) { x.acos() }
    /// The inverse of the hyperbolic cosine.
    acosh acoshf(x) { x.acosh() }
    /// The angle in radians whose sine is `x`.
    asin asinf(x) { x.asin() }
    /// The inverse of the hyperbolic sine.
    asinh asinhf(x) { x.asinh() }
    /// The angle in radians whose tangent is `x`.
    atan atanf(x) { x.atan() }
    /// The angle in radians of the point (`y`, `x`): the first argument is the point's y.
    atan2 atan2f(y, x) { y.atan2(x) }
    /// The inverse of the hyperbolic tangent.
    atanh atanhf(x) { x.atanh() }
    /// The cube root.
    cbrt cbrtf(x) { x.cbrt() }
    /// Rounds up to a whole number.
    ceil ceilf(x) { x.ceil() }
    /// The magnitude of `x` with the sign of `y`.
    copysign copysignf(x, y) { x.copysign(y) }
    /// The cosine, of an angle in radians.
    cos cosf(x) { x.cos() }
    /// The hyperbolic cosine.
    cosh coshf(x) { x.cosh() }
    /// The cosine of `x * pi`.
    cospi cospif(x) { cos_pi(x) }
    /// The error function.
    erf erff(x) { libm::erf(x) }
    /// The complementary error function, `1 - erf(x)`.
    erfc erfcf(x) { libm::erfc(x) }
    /// The inverse of [`erfc`].
    erfcinv erfcinvf(x) { simulated::erfc_inv(x) }
    /// The scaled complementary error function, `exp(x * x) * erfc(x)`.
    erfcx erfcxf(x) { simulated::erfc_scaled(x) }
    /// The inverse of [`erf`].
    erfinv erfinvf(x) { simulated::erf_inv(x) }
    /// e to the power `x`.
    exp expf(x) { x.exp() }
    /// 10 to the power `x`.
    exp10 exp10f(x) { libm::exp10(x) }
    /// 2 to the power `x`.
    exp2 exp2f(x) { x.exp2() }
    /// e to the power `x`, minus 1.
    expm1 expm1f(x) { x.exp_m1() }
    /// The magnitude.
    fabs fabsf(x) { x.abs() }
    /// `x - y`, or 0 if that is negative.
    fdim fdimf(x, y) { libm::fdim(x, y) }
    /// Rounds down to a whole number.
    floor floorf(x) { x.floor() }
    /// The greater of the two; the other one if one is NaN.
    fmax fmaxf(x, y) { x.max(y) }
    /// The lesser of the two; the other one if one is NaN.
    fmin fminf(x, y) { x.min(y) }
    /// The remainder of `x / y`, with the sign of `x`.
    fmod fmodf(x, y) { x % y }
    /// The length of the vector (`x`, `y`).
    hypot hypotf(x, y) { x.hypot(y) }
    /// The Bessel function of the first kind of order 0.
    j0 j0f(x) { libm::j0(x) }
    /// The Bessel function of the first kind of order 1.
    j1 j1f(x) { libm::j1(x) }
    /// The Bessel function of the first kind of order `n`.
    jn jnf(n: i32, x) { libm::jn(n, x) }
    /// `x * 2^n`.
    ldexp ldexpf(x, n: i32) { libm::ldexp(x, n) }
    /// The natural logarithm of the magnitude of the gamma function.
    lgamma lgammaf(x) { libm::lgamma(x) }
    /// The natural logarithm.
    log logf(x) { x.ln() }
    /// The logarithm to base 10.
    log10 log10f(x) { x.log10() }
    /// The natural logarithm of `1 + x`.
    log1p log1pf(x) { x.ln_1p() }
    /// The logarithm to base 2.
    log2 log2f(x) { x.log2() }
    /// The exponent of `x` to base 2, as a float; minus infinity for 0.
    logb logbf(x) { simulated::exponent(x) }
    /// Rounds to the nearest whole number, halves to the even one.
    nearbyint nearbyintf(x) { x.round_ties_even() }
    /// The probability that a standard normal variable is at most `x`.
    normcdf normcdff(x) { simulated::normal_cdf(x) }
    /// The inverse of [`normcdf`].
    normcdfinv normcdfinvf(x) { simulated::normal_cdf_inv(x) }
    /// `x` to the power `y`.
    pow powf(x, y) { x.powf(y) }
    /// `x` to an integer power.
    powi powif(x, n: i32) { x.powi(n) }
    /// The reciprocal of the cube root.
    rcbrt rcbrtf(x) { 1.0 / x.cbrt() }
    /// The remainder of `x / y` for the quotient nearest to it.
    remainder remainderf(x, y) { libm::remainder(x, y) }
    /// Rounds to the nearest whole number, halves to the even one.
    rint rintf(x) { x.round_ties_even() }
    /// Rounds to the nearest whole number, halves away from zero.
    round roundf(x) { x.round() }
    /// The reciprocal of the square root.
    rsqrt rsqrtf(x) { 1.0 / x.sqrt() }
    /// `x * 2^n`.
    scalbn scalbnf(x, n: i32) { libm::scalbn(x, n) }
    /// The sine, of an angle in radians.
    sin sinf(x) { x.sin() }
    /// The hyperbolic sine.
    sinh sinhf(x) { x.sinh() }
    /// The sine of `x * pi`.
    sinpi sinpif(x) { sin_pi(x) }
    /// The square root.
    sqrt sqrtf(x) { x.sqrt() }
    /// The tangent, of an angle in radians.
    tan tanf(x) { x.tan() }
    /// The hyperbolic tangent.
    tanh tanhf(x) { x.tanh() }
    /// The gamma function.
    tgamma tgammaf(x) { libm::tgamma(x) }
    /// Rounds toward zero to a whole number.
    trunc truncf(x) { x.trunc() }
    /// The Bessel function of the second kind of order 0.
    y0 y0f(x) { libm::y0(x) }
    /// The Bessel function of the second kind of order 1.
    y1 y1f(x) { libm::y1(x) }
    /// The Bessel function of the second kind of order `n`.
    yn ynf(n: i32, x) { libm::yn(n, x) }
}

libdevice! {
    /// `x * y + z`, rounded once.
    fn fma(x: f64, y: f64, z: f64) -> f64 { x.mul_add(y, z) }
    /// `x * y + z`, rounded once.
    fn fmaf(x: f32, y: f32, z: f32) -> f32 { x.mul_add(y, z) }
    /// The number after `x` in the direction of `y`.
    fn nextafter(x: f64, y: f64) -> f64 { libm::nextafter(x, y) }
    /// The number after `x` in the direction of `y`.
    fn nextafterf(x: f32, y: f32) -> f32 { libm::nextafterf(x, y) }
    /// `x` brought into the range 0 to 1; 0 for NaN.
    fn saturatef(x: f32) -> f32 { if x > 0.0 { x.min(1.0) } else { 0.0 } }

    /// [`cosf`], fast and less accurate.
    fn fast_cosf(x: f32) -> f32 { x.cos() }
    /// [`exp10f`], fast and less accurate.
    fn fast_exp10f(x: f32) -> f32 { libm::exp10f(x) }
    /// [`expf`], fast and less accurate.
    fn fast_expf(x: f32) -> f32 { x.exp() }
    /// `x / y`, fast and less accurate; 0 for a `y` above 2^126.
    fn fast_fdividef(x: f32, y: f32) -> f32 {
        if y.is_finite() && y.abs() > 2_f32.powi(126) { 0.0 * x } else { x / y }
    }
    /// [`log10f`], fast and less accurate.
    fn fast_log10f(x: f32) -> f32 { x.log10() }
    /// [`log2f`], fast and less accurate.
    fn fast_log2f(x: f32) -> f32 { x.log2() }
    /// [`logf`], fast and less accurate.
    fn fast_logf(x: f32) -> f32 { x.ln() }
    /// [`powf`], fast and less accurate.
    fn fast_powf(x: f32, y: f32) -> f32 { x.powf(y) }
    /// [`sinf`], fast and less accurate.
    fn fast_sinf(x: f32) -> f32 { x.sin() }
    /// [`tanf`], fast and less accurate.
    fn fast_tanf(x: f32) -> f32 { x.tan() }
}
