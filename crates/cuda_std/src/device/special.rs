//! Special registers, and instructions on the address that a pointer holds.

unsafe extern "C" {
    /// Prints the texts, with line, block and thread, and ends the launch.
    pub fn __assertfail(
        message: *const u8,
        file: *const u8,
        line: u32,
        function: *const u8,
        char_size: usize,
    );

    pub safe fn __nvvm_breakpoint();
    pub safe fn __nvvm_clock() -> u64;
    pub safe fn __nvvm_dynamic_smem_size() -> u32;
    pub safe fn __nvvm_total_smem_size() -> u32;

    pub safe fn __nvvm_is_global(pointer: *const u8) -> u32;
    pub safe fn __nvvm_is_shared(pointer: *const u8) -> u32;
    pub safe fn __nvvm_is_constant(pointer: *const u8) -> u32;
    pub safe fn __nvvm_is_local(pointer: *const u8) -> u32;

    pub safe fn __nvvm_to_global(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_to_shared(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_to_constant(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_to_local(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_global(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_shared(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_constant(pointer: *const u8) -> *const u8;
    pub safe fn __nvvm_from_local(pointer: *const u8) -> *const u8;
}
