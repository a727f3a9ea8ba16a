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

/// The functions of `f64` and of `f32`.
macro_rules! of_each_float {
    ($($float:ident: $sincos:ident $sincospi:ident $sinpi:ident $cospi:ident $frexp:ident $modf:ident $remquo:ident;)*) => {
        with_pointers! {
            $(
                /// The sine and the cosine, of an angle in radians.
                fn $sincos(x: $float, sine: *mut $float, cosine: *mut $float) {
                    sine.write(x.sin());
                    cosine.write(x.cos());
                }
                /// The sine and the cosine of `x * pi`.
                fn $sincospi(x: $float, sine: *mut $float, cosine: *mut $float) {
                    sine.write(super::$sinpi(x));
                    cosine.write(super::$cospi(x));
                }
                /// The fraction, of magnitude 0.5 to 1, and the power of 2 whose product is `x`.
                fn $frexp(x: $float, exponent: *mut i32) -> $float {
                    let (fraction, power) = libm::$frexp(x);
                    exponent.write(power);
                    fraction
                }
                /// The fractional and the whole part.
                fn $modf(x: $float, whole: *mut $float) -> $float {
                    whole.write(x.trunc());
                    libm::$modf(x).0
                }
                /// The remainder of `x / y` for the quotient nearest to it, and the last three bits
                /// of that quotient with its sign.
                fn $remquo(x: $float, y: $float, quotient: *mut i32) -> $float {
                    let (remainder, bits) = libm::$remquo(x, y);
                    quotient.write(bits % 8);
                    remainder
                }
            )*
        }
    };
}

of_each_float! {
    f64: sincos sincospi sinpi cospi frexp modf remquo;
    f32: sincosf sincospif sinpif cospif frexpf modff remquof;
}

with_pointers! {
    /// [`sincosf`], fast and less accurate.
    fn fast_sincosf(x: f32, sine: *mut f32, cosine: *mut f32) {
        sine.write(x.sin());
        cosine.write(x.cos());
    }
}
