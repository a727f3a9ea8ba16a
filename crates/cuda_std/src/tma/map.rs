//! What a tensor map says.

/// Describes a matrix and the boxes that copies move. A kernel takes it as `#[grid_constant]`.
///
/// For a GPU the driver makes it (`cuTensorMapEncodeTiled`), for the simulator `Tiles::simulated`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct TensorMap(
    /// Only its maker knows what they say.
    pub [u64; 16],
);

/// What a [`TensorMap`] says, for the host that makes one: a matrix in global memory, and the boxes
/// of it that copies move.
#[cfg(not(cuda_device))]
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// The matrix, at a multiple of 16 bytes.
    pub global: *const u8,
    /// 1, 2, 4 or 8.
    pub element_bytes: usize,
    /// Whether elements are f32 that a load rounds to tf32, as
    /// [`round_to_tf32`](crate::mma::round_to_tf32) does. Others are bits, and stay as they are.
    pub rounds_to_tf32: bool,
    /// Elements of a row, and rows.
    pub width: usize,
    pub height: usize,
    /// From a row to the next: a multiple of 16.
    pub row_bytes: usize,
    /// Matrices of this shape, for copies of three dimensions; `None` for copies of two.
    pub planes: Option<Planes>,
    /// Elements of a box's row, and its rows: up to 256 each. A row of the box has a multiple of 16
    /// bytes, at most as many as the swizzle allows.
    pub box_width: usize,
    pub box_height: usize,
    pub swizzle: Swizzle,
}

/// Matrices of one shape.
#[cfg(not(cuda_device))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// How many: one at least.
    pub count: usize,
    /// From the first element of a matrix to the first of the next: a multiple of 16.
    pub bytes: usize,
}

#[cfg(not(cuda_device))]
impl Tiles {
    /// What makes the driver refuse it, if anything does.
    pub fn problem(&self) -> Option<String> {
        let row_bytes_of_box = self.box_width * self.element_bytes;
        let sides = [self.box_width, self.box_height];
        if !matches!(self.element_bytes, 1 | 2 | 4 | 8) {
            Some(format!("elements of {} bytes", self.element_bytes))
        } else if self.rounds_to_tf32 && self.element_bytes != 4 {
            Some(format!(
                "elements of {} bytes to be rounded to tf32",
                self.element_bytes
            ))
        } else if !self.global.addr().is_multiple_of(16) || !self.row_bytes.is_multiple_of(16) {
            Some(format!(
                "a matrix at {:p} with rows {} bytes apart; both must be multiples of 16",
                self.global, self.row_bytes
            ))
        } else if let Some(planes) = self.planes
            && !planes.bytes.is_multiple_of(16)
        {
            Some(format!(
                "matrices {} bytes apart; that must be a multiple of 16",
                planes.bytes
            ))
        } else if self.width == 0
            || self.height == 0
            || self.planes.is_some_and(|planes| planes.count == 0)
        {
            Some("a matrix without elements".to_owned())
        } else if sides.iter().any(|side| !(1..=256).contains(side)) {
            Some(format!(
                "boxes of {} x {}; a side is from 1 to 256",
                self.box_height, self.box_width
            ))
        } else if !row_bytes_of_box.is_multiple_of(16)
            || self
                .swizzle
                .row_bytes()
                .is_some_and(|most| row_bytes_of_box > most)
        {
            Some(format!(
                "boxes whose rows have {row_bytes_of_box} bytes, with the swizzle {:?}",
                self.swizzle
            ))
        } else {
            None
        }
    }

    /// Bytes of a box.
    pub fn box_bytes(&self) -> usize {
        self.box_width * self.box_height * self.element_bytes
    }

    /// The map for a launch in the simulator.
    ///
    /// # Errors
    ///
    /// [`Self::problem`].
    pub fn simulated(&self) -> Result<TensorMap, String> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        let mut words = [0; 16];
        let planes = self.planes.unwrap_or(Planes { count: 0, bytes: 0 });
        let numbers = [
            SIMULATED as usize,
            self.global.expose_provenance(),
            self.element_bytes,
            self.width,
            self.height,
            self.row_bytes,
            self.box_width,
            self.box_height,
            self.swizzle as usize,
            self.rounds_to_tf32.into(),
            planes.count,
            planes.bytes,
        ];
        for (word, number) in words.iter_mut().zip(numbers) {
            *word = number as u64;
        }
        Ok(TensorMap(words))
    }

    /// What a map of the simulator says; `None` if it is no such map.
    pub(crate) fn of(map: &TensorMap) -> Option<Self> {
        let numbers = map.0.map(|word| word as usize);
        let swizzles = [
            Swizzle::None,
            Swizzle::Bytes32,
            Swizzle::Bytes64,
            Swizzle::Bytes128,
        ];
        (map.0[0] == SIMULATED).then(|| Self {
            global: std::ptr::with_exposed_provenance(numbers[1]),
            element_bytes: numbers[2],
            width: numbers[3],
            height: numbers[4],
            row_bytes: numbers[5],
            box_width: numbers[6],
            box_height: numbers[7],
            swizzle: swizzles[numbers[8] % 4],
            rounds_to_tf32: numbers[9] == 1,
            planes: (numbers[10] > 0).then_some(Planes {
                count: numbers[10],
                bytes: numbers[11],
            }),
        })
    }
}

/// What a map of the simulator begins with.
#[cfg(not(cuda_device))]
const SIMULATED: u64 = u64::from_le_bytes(*b"of tiles");

/// The order of the 16-byte pieces of a box's rows in shared memory. The rows of a swizzled box
/// have as many bytes as its name says, or fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    #[default]
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl Swizzle {
    /// The address of the byte that would be at `address` without a swizzle.
    #[inline(always)]
    pub const fn place(self, address: usize) -> usize {
        let pieces = match self {
            Swizzle::None => 0b000,
            Swizzle::Bytes32 => 0b001,
            Swizzle::Bytes64 => 0b011,
            Swizzle::Bytes128 => 0b111,
        };
        address ^ ((address >> 7 & pieces) << 4)
    }

    /// The most bytes that a row of a box can have; a box without a swizzle has no limit.
    pub const fn row_bytes(self) -> Option<usize> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128 => Some(128),
        }
    }
}
