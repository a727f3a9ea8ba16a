//! Which element of a matrix is in which register of which lane.

/// How the lanes of a warp hold the three matrices of a multiplication: `A`, ROWS x DEPTH; `B`,
/// DEPTH x 8; and the sums, ROWS x 8. A lane's part of a matrix is its fragment.
///
/// Lane `4 * g + t` belongs to group `g` (0 to 7) and is number `t` (0 to 3) in it. A cell below
/// shows `g.t` of the lane that holds the element, here for [`Layout::M16N8K8_TF32`]:
///
/// ```text
///            A, 16 x 8: a[0] to a[3]                B, 8 x 8: b[0], b[1]
///      k = 0    1    2    3   4    5    6    7     col = 0    1        7
///        +-------------------+-------------------+   k  +---------- ... ---+
///  row 0 | 0.0  0.1  0.2  0.3|0.0  0.1  0.2  0.3 |   0  | 0.0  1.0     7.0 |
///      1 | 1.0  1.1  1.2  1.3|1.0  1.1  1.2  1.3 |   1  | 0.1  1.1     7.1 |
///    ... |       a[0]        |       a[2]        |   2  | 0.2  1.2     7.2 |
///      7 | 7.0  7.1  7.2  7.3|7.0  7.1  7.2  7.3 |   3  | 0.3  1.3     7.3 | b[0]
///        +-------------------+-------------------+      +---------- ... ---+
///      8 | 0.0  0.1  0.2  0.3|0.0  0.1  0.2  0.3 |   4  | 0.0  1.0     7.0 |
///    ... |       a[1]        |       a[3]        | ...  |                  | b[1]
///     15 | 7.0  7.1  7.2  7.3|7.0  7.1  7.2  7.3 |   7  | 0.3  1.3     7.3 |
///        +-------------------+-------------------+      +---------- ... ---+
///
///            sums, 16 x 8: c[0] to c[3]
///    col = 0        1        2        3              6        7
///        +-----------------+-----------------+ ... +-----------------+
///  row 0 | 0.0 c[0]   c[1] | 0.1 c[0]   c[1] |     | 0.3 c[0]   c[1] |
///    ... |                 |                 |     |                 |
///      7 | 7.0 c[0]   c[1] | 7.1 c[0]   c[1] |     | 7.3 c[0]   c[1] |
///        +-----------------+-----------------+ ... +-----------------+
///      8 | 0.0 c[2]   c[3] | 0.1 c[2]   c[3] |     | 0.3 c[2]   c[3] |
///    ...
/// ```
///
/// The other shapes are made alike. One with 8 rows has no lower half. A greater depth continues
/// to the right: `a[4]` is beside `a[2]`, `b[2]` below `b[1]`. Elements of 16 bits are in pairs
/// where the picture has one element: the four lanes of a group hold 8 neighbours along K, lane
/// `t` those at `2 * t` and `2 * t + 1`, in the lower and the upper half of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Rows of A and of the sums: 8 or 16.
    pub rows: u32,
    /// Columns of A and rows of B.
    pub depth: u32,
    /// Neighbours along K that share a register: 4 for elements of 8 bits, 2 for those of 16, else 1.
    pub packed: u32,
}

impl Layout {
    /// f64: [`m8n8k4_f64`](super::m8n8k4_f64).
    pub const M8N8K4_F64: Layout = Layout::new(8, 4, 1);
    /// f64: [`m16n8k4_f64`](super::m16n8k4_f64).
    pub const M16N8K4_F64: Layout = Layout::new(16, 4, 1);
    /// f64: [`m16n8k8_f64`](super::m16n8k8_f64).
    pub const M16N8K8_F64: Layout = Layout::new(16, 8, 1);
    /// f64: [`m16n8k16_f64`](super::m16n8k16_f64).
    pub const M16N8K16_F64: Layout = Layout::new(16, 16, 1);
    /// tf32: [`m16n8k8_tf32`](super::m16n8k8_tf32).
    pub const M16N8K8_TF32: Layout = Layout::new(16, 8, 1);
    /// bf16 and f16: [`m16n8k16_bf16`](super::m16n8k16_bf16) and
    /// [`m16n8k16_f16`](super::m16n8k16_f16).
    pub const M16N8K16_HALF: Layout = Layout::new(16, 16, 2);
    /// i8 and u8: [`m16n8k32_s8`](super::m16n8k32_s8) and its like.
    pub const M16N8K32_INTEGERS: Layout = Layout::new(16, 32, 4);

    /// Columns of B and of the sums.
    pub const COLS: u32 = 8;

    const fn new(rows: u32, depth: u32, packed: u32) -> Layout {
        Layout {
            rows,
            depth,
            packed,
        }
    }

    /// Row and k of element `i` of a lane's fragment of A. The elements of a register follow each
    /// other, the one in its lower half first.
    #[inline(always)]
    pub const fn a(self, lane: u32, i: u32) -> (u32, u32) {
        let (register, part) = (i / self.packed, i % self.packed);
        // Registers go down first, then to the right.
        let halves = self.rows / 8;
        let row = lane / 4 + 8 * (register % halves);
        (row, self.k(lane, register / halves, part))
    }

    /// K and column of element `i` of a lane's fragment of B.
    #[inline(always)]
    pub const fn b(self, lane: u32, i: u32) -> (u32, u32) {
        (self.k(lane, i / self.packed, i % self.packed), lane / 4)
    }

    /// Row and column of element `i` of a lane's sums.
    #[inline(always)]
    pub const fn c(self, lane: u32, i: u32) -> (u32, u32) {
        (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2)
    }

    /// Place along K of a part of a register that is the `step`-th in this direction.
    #[inline(always)]
    const fn k(self, lane: u32, step: u32, part: u32) -> u32 {
        self.packed * (4 * step + lane % 4) + part
    }

    /// Elements of A that a lane holds.
    pub const fn a_elements(self) -> usize {
        (self.rows * self.depth / 32) as usize
    }

    /// Elements of B that a lane holds.
    pub const fn b_elements(self) -> usize {
        (self.depth * Self::COLS / 32) as usize
    }

    /// Sums that a lane holds.
    pub const fn c_elements(self) -> usize {
        (self.rows * Self::COLS / 32) as usize
    }
}
