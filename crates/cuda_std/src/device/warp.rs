//! Operations of a warp that compare or combine the values of its lanes.

/// Declares functions of a mask of lanes and a value. As in `convergent!`, the assembly keeps
/// rustc from copying the call into two branches.
macro_rules! of_lanes {
    ($($(#[$condition:meta])? fn $name:ident($value:ty);)*) => {
        mod declared {
            unsafe extern "C" {
                $($(#[$condition])? pub fn $name(mask: u32, value: $value) -> u32;)*
            }
        }
        $(
            $(#[$condition])?
            #[inline(always)]
            pub unsafe fn $name(mask: u32, value: $value) -> u32 {
                // SAFETY: the caller vouches for the lanes; the text does nothing.
                unsafe {
                    let result = declared::$name(mask, value);
                    super::stand_together!();
                    result
                }
            }
        )*
    };
}

of_lanes! {
    fn __nvvm_warp_match_any_b32(u32);
    fn __nvvm_warp_match_any_b64(u64);
    fn __nvvm_warp_match_all_b32(u32);
    fn __nvvm_warp_match_all_b64(u64);

    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_add(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_min_u32(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_max_u32(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_min_i32(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_max_i32(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_and(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_or(u32);
    #[cfg(cuda_arch_at_least = "80")]
    fn __nvvm_warp_reduce_xor(u32);
}
