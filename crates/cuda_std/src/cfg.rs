//! The compute capability that device code is compiled for.

/// A version of NVIDIA's instruction set, older before newer.
///
/// Those up to 7.2 are there for code that compares with them; device code is compiled for 7.5 or
/// newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "Compute75 is compute capability 7.5")]
pub enum ComputeCapability {
    Compute35,
    Compute37,
    Compute50,
    Compute52,
    Compute53,
    Compute60,
    Compute61,
    Compute62,
    Compute70,
    Compute72,
    Compute75,
    Compute80,
    Compute86,
    Compute87,
    Compute89,
    Compute90,
    Compute100,
    Compute103,
    Compute120,
}

impl ComputeCapability {
    /// What this code is compiled for; a constant, so that a branch on it costs nothing.
    ///
    /// ```
    /// use cuda_std::cfg::ComputeCapability;
    ///
    /// let has_redux = ComputeCapability::from_cuda_arch_env() >= ComputeCapability::Compute80;
    /// # assert!(has_redux);
    /// ```
    ///
    /// The simulator, where every function works, is the newest of them. (The name is that of
    /// `cuda_std` 0.2, which reads a variable; this is what `cuda_builder` was told.)
    #[inline(always)]
    pub const fn from_cuda_arch_env() -> Self {
        #[cfg(cuda_device)]
        let compiled_for = Self::of_the_device_build();
        #[cfg(not(cuda_device))]
        let compiled_for = Self::Compute120;
        compiled_for
    }

    /// `cuda_builder` sets a cfg for each capability up to the one it builds for.
    #[cfg(cuda_device)]
    #[inline(always)]
    const fn of_the_device_build() -> Self {
        macro_rules! newest {
            ($($feature:literal => $capability:ident,)*) => {
                $(if cfg!(target_feature = $feature) { return Self::$capability; })*
            };
        }
        newest! {
            "compute_120" => Compute120,
            "compute_103" => Compute103,
            "compute_100" => Compute100,
            "compute_90" => Compute90,
            "compute_89" => Compute89,
            "compute_87" => Compute87,
            "compute_86" => Compute86,
            "compute_80" => Compute80,
        }
        Self::Compute75
    }
}
