//! What `#[gpu_only]` and `#[externally_visible]` mean on each machine.

/// A function that is not compiled where it cannot run.
#[doc(hidden)]
#[cfg(cuda_device)]
#[macro_export]
macro_rules! __gpu_only {
    ($name:literal, [$($head:tt)*], $body:block) => { $($head)* $body };
}

/// A function that is not compiled where it cannot run.
#[doc(hidden)]
#[cfg(not(cuda_device))]
#[macro_export]
macro_rules! __gpu_only {
    ($name:literal, [$($head:tt)*], $body:block) => {
        #[allow(unused_variables, reason = "the body that uses them is not compiled")]
        $($head)* {
            ::core::unimplemented!(::core::concat!("`", $name, "` can only be called on a GPU"))
        }
    };
}

/// A function in the section from which `device_codegen` keeps all.
#[doc(hidden)]
#[cfg(cuda_device)]
#[macro_export]
macro_rules! __externally_visible {
    ($function:item) => {
        #[unsafe(link_section = ".nvvm.visible")]
        $function
    };
}

/// A function that others may call.
#[doc(hidden)]
#[cfg(not(cuda_device))]
#[macro_export]
macro_rules! __externally_visible {
    ($function:item) => {
        $function
    };
}
