//! Functions with more than one result, which they write through pointers.

/// Defines functions of libdevice that write through pointers. The body is what they mean in the
/// simulator.
macro_rules! with_pointers {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(
            #[cfg(cuda_device)]
            unsafe extern "C" {
                $(#[$doc])*
                ///
                /// # Safety
                ///
                /// The pointers are valid for writes.
                #[link_name = concat!("__nv_", stringify!($name))]
                pub unsafe fn $name($($argument: $ty),*) $(-> $result)?;
            }

            #[cfg(not(cuda_device))]
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// The pointers are valid for writes.
            #[inline]
            pub unsafe fn $name($($argument: $ty),*) $(-> $result)? {
                // SAFETY: the caller vouches for the pointers.
                unsafe { $body }
            }
        )*
    };
}

with_pointers! {
    /// The sine and the cosine, of an angle in radians.
    fn sincos(x: f64, sine: *mut f64, cosine: *mut f64) {
        sine.write(x.sin());
        cosine.write(x.cos());
    }
    /// The sine and the cosine, of an angle in radians.
    fn sincosf(x: f32, sine: *mut f32, cosine: *mut f32) {
        sine.write(x.sin());
        cosine.write(x.cos());
    }
    /// [`sincosf`], fast and less accurate.
    fn fast_sincosf(x: f32, sine: *mut f32, cosine: *mut f32) {
        sine.write(x.sin());
        cosine.write(x.cos());
    }
    /// The sine and the cosine of `x * pi`.
    fn sincospi(x: f64, sine: *mut f64, cosine: *mut f64) {
        sine.write(super::sinpi(x));
        cosine.write(super::cospi(x));
    }
    /// The sine and the cosine of `x * pi`.
    fn sincospif(x: f32, sine: *mut f32, cosine: *mut f32) {
        sine.write(super::sinpif(x));
        cosine.write(super::cospif(x));
    }
    /// The fraction, of magnitude 0.5 to 1, and the power of 2 whose product is `x`.
    fn frexp(x: f64, exponent: *mut i32) -> f64 {
        let (fraction, power) = libm::frexp(x);
        exponent.write(power);
        fraction
    }
    /// The fraction, of magnitude 0.5 to 1, and the power of 2 whose product is `x`.
    fn frexpf(x: f32, exponent: *mut i32) -> f32 {
        let (fraction, power) = libm::frexpf(x);
        exponent.write(power);
        fraction
    }
    /// The fractional and the whole part.
    fn modf(x: f64, whole: *mut f64) -> f64 {
        whole.write(x.trunc());
        libm::modf(x).0
    }
    /// The fractional and the whole part.
    fn modff(x: f32, whole: *mut f32) -> f32 {
        whole.write(x.trunc());
        libm::modff(x).0
    }
    /// The remainder of `x / y` for the quotient nearest to it, and the last three bits of that
    /// quotient with its sign.
    fn remquo(x: f64, y: f64, quotient: *mut i32) -> f64 {
        let (remainder, bits) = libm::remquo(x, y);
        quotient.write(bits % 8);
        remainder
    }
    /// The remainder of `x / y` for the quotient nearest to it, and the last three bits of that
    /// quotient with its sign.
    fn remquof(x: f32, y: f32, quotient: *mut i32) -> f32 {
        let (remainder, bits) = libm::remquof(x, y);
        quotient.write(bits % 8);
        remainder
    }
}
