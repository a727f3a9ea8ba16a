//! Which memory a pointer points into.
//!
//! A Rust pointer is generic: it may point into any memory of the GPU, and an access finds out
//! which. Within one memory an address may be another number.

/// A memory of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressSpace {
    /// Memory of the whole device.
    Global,
    /// Memory of a block: see [`shared`](mod@crate::shared).
    Shared,
    /// Memory of the whole device that kernels do not write: a static with
    /// `#[address_space(constant)]`.
    Constant,
    /// Memory of a thread: its stack.
    Local,
}

/// Whether `ptr`, a generic pointer, points into a memory.
///
/// The simulator knows what is shared memory and what is the thread's stack; all else is global
/// memory, also what is constant memory on a GPU.
///
/// # Safety
///
/// `ptr` points to a `T`.
#[inline(always)]
pub unsafe fn is_in_address_space<T>(ptr: *const T, address_space: AddressSpace) -> bool {
    let ptr = ptr.cast::<u8>();
    #[cfg(cuda_device)]
    let is_inside = match address_space {
        AddressSpace::Global => crate::device::__nvvm_is_global(ptr),
        AddressSpace::Shared => crate::device::__nvvm_is_shared(ptr),
        AddressSpace::Constant => crate::device::__nvvm_is_constant(ptr),
        AddressSpace::Local => crate::device::__nvvm_is_local(ptr),
    } != 0;
    #[cfg(not(cuda_device))]
    let is_inside = match address_space {
        AddressSpace::Global => {
            !crate::simulator::is_shared(ptr) && !crate::simulator::is_local(ptr)
        }
        AddressSpace::Shared => crate::simulator::is_shared(ptr),
        AddressSpace::Constant => false,
        AddressSpace::Local => crate::simulator::is_local(ptr),
    };
    is_inside
}

/// Defines a conversion of pointers.
macro_rules! conversions {
    ($(
        $(#[$doc:meta])*
        $name:ident = $global:ident, $shared:ident, $constant:ident, $local:ident;
    )*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub unsafe fn $name<T>(ptr: *const T, address_space: AddressSpace) -> *const T {
                #[cfg(cuda_device)]
                let ptr = match address_space {
                    AddressSpace::Global => crate::device::$global(ptr.cast()),
                    AddressSpace::Shared => crate::device::$shared(ptr.cast()),
                    AddressSpace::Constant => crate::device::$constant(ptr.cast()),
                    AddressSpace::Local => crate::device::$local(ptr.cast()),
                }
                .cast();
                #[cfg(not(cuda_device))]
                let _ = address_space;
                ptr
            }
        )*
    };
}

conversions! {
    /// The address of a generic pointer within its memory.
    ///
    /// It is not a pointer that Rust code can access, but what an instruction of PTX for that
    /// memory takes. In the simulator there is one address for everything.
    ///
    /// # Safety
    ///
    /// `ptr` points to a `T` in that memory.
    convert_generic_to_specific_address_space =
        __nvvm_to_global, __nvvm_to_shared, __nvvm_to_constant, __nvvm_to_local;

    /// The generic pointer to an address within a memory: the inverse of
    /// [`convert_generic_to_specific_address_space`].
    ///
    /// # Safety
    ///
    /// `ptr` is the address of a `T` within that memory.
    convert_specific_address_space_to_generic =
        __nvvm_from_global, __nvvm_from_shared, __nvvm_from_constant, __nvvm_from_local;
}
