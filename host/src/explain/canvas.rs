//! A sheet of characters to draw rectangles on: where their lines meet, they join.

/// Directions in which a line leaves a cell, as bits.
const UP: u8 = 1;
const RIGHT: u8 = 2;
const DOWN: u8 = 4;
const LEFT: u8 = 8;

/// The character for each set of directions.
const LINES: [char; 16] = [
    ' ', '│', '─', '└', '│', '│', '┌', '├', '─', '┘', '─', '┴', '┐', '┤', '┬', '┼',
];

#[derive(Clone, Copy)]
struct Cell {
    lines: u8,
    /// Covers lines.
    letter: Option<char>,
}

/// Grows as it is drawn on.
#[derive(Default)]
pub(super) struct Canvas {
    rows: Vec<Vec<Cell>>,
}

/// A rectangle by its lines: its corners are at (`x`, `y`) and (`x + width`, `y + height`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

impl Canvas {
    fn cell(&mut self, x: usize, y: usize) -> &mut Cell {
        const EMPTY: Cell = Cell {
            lines: 0,
            letter: None,
        };
        if self.rows.len() <= y {
            self.rows.resize_with(y + 1, Vec::new);
        }
        let row = &mut self.rows[y];
        if row.len() <= x {
            row.resize(x + 1, EMPTY);
        }
        &mut row[x]
    }

    pub fn rectangle(&mut self, rectangle: Rectangle) {
        let Rectangle {
            x,
            y,
            width,
            height,
        } = rectangle;
        for side in [y, y + height] {
            for column in x..x + width {
                self.cell(column, side).lines |= RIGHT;
                self.cell(column + 1, side).lines |= LEFT;
            }
        }
        for side in [x, x + width] {
            for row in y..y + height {
                self.cell(side, row).lines |= DOWN;
                self.cell(side, row + 1).lines |= UP;
            }
        }
    }

    /// Writes to the right from (`x`, `y`).
    pub fn text(&mut self, x: usize, y: usize, text: &str) {
        for (index, letter) in text.chars().enumerate() {
            self.cell(x + index, y).letter = Some(letter);
        }
    }

    /// Fills what lies between a rectangle's lines.
    pub fn fill(&mut self, rectangle: Rectangle, letter: char) {
        for y in rectangle.y + 1..rectangle.y + rectangle.height {
            for x in rectangle.x + 1..rectangle.x + rectangle.width {
                self.cell(x, y).letter = Some(letter);
            }
        }
    }

    /// The sheet, as lines without blanks at their ends.
    pub fn show(&self) -> String {
        let line = |row: &Vec<Cell>| {
            let letters = row.iter().map(|cell| {
                let line = LINES[usize::from(cell.lines)];
                cell.letter.unwrap_or(line)
            });
            letters.collect::<String>().trim_end().to_string() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_join_where_they_meet() {
        let mut canvas = Canvas::default();
        let (x, y) = (0, 0);
        for (width, height) in [(6, 3), (3, 3), (6, 1)] {
            canvas.rectangle(Rectangle {
                x,
                y,
                width,
                height,
            });
        }
        canvas.text(4, 2, "C");
        assert_eq!(canvas.show(), "┌──┬──┐\n├──┼──┤\n│  │C │\n└──┴──┘\n");
    }
}
