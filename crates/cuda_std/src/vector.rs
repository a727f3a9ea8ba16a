//! Indices and extents in two and three dimensions.

/// An index or extent in x and y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vec2<T> {
    pub x: T,
    pub y: T,
}

impl<T> Vec2<T> {
    /// The vector of these components.
    pub const fn new(x: T, y: T) -> Self {
        Self { x, y }
    }
}

/// An index or extent in x, y and z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vec3<T> {
    pub x: T,
    pub y: T,
    pub z: T,
}

impl<T> Vec3<T> {
    /// The vector of these components.
    pub const fn new(x: T, y: T, z: T) -> Self {
        Self { x, y, z }
    }
}

#[cfg(feature = "glam")]
impl From<Vec2<u32>> for glam::UVec2 {
    #[inline(always)]
    fn from(Vec2 { x, y }: Vec2<u32>) -> Self {
        Self::new(x, y)
    }
}

#[cfg(feature = "glam")]
impl From<Vec3<u32>> for glam::UVec3 {
    #[inline(always)]
    fn from(Vec3 { x, y, z }: Vec3<u32>) -> Self {
        Self::new(x, y, z)
    }
}
