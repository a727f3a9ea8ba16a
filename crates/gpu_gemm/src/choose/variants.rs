//! The kernels that a choice is among.

use std::hash::{Hash, Hasher};

use gpu_kernels::spec::Variant;

/// The kernels to choose from. Those with an epilogue are chosen by prediction alone, whatever was
/// tuned or fixed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variants(Option<&'static [Variant]>);

impl Variants {
    /// Those of the library.
    pub(crate) const LIBRARY: Variants = Variants(None);

    /// Those with an epilogue.
    pub(crate) fn fused(variants: &'static [Variant]) -> Variants {
        Variants(Some(variants))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'static Variant> {
        let library = self.0.is_none().then(gpu_kernels::variants);
        let own = self.0.into_iter().flatten();
        library.into_iter().flatten().chain(own)
    }

    /// Where they are, which tells tables apart.
    fn place(self) -> Option<*const [Variant]> {
        self.0.map(std::ptr::from_ref)
    }
}

impl PartialEq for Variants {
    fn eq(&self, other: &Variants) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Variants {}

impl Hash for Variants {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.place().hash(hasher);
    }
}
