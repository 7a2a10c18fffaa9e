//! Tables that read like those of nccl-tests: fixed columns, `#` before every line that is not data.
//!
//! The result is plain text with no colour and no frame, so `awk` and `grep -v '^#'` work on it.

use std::fmt;

/// Spaces between two columns.
const GAP: &str = "  ";

/// On which side of a column its cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The heading of one column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    unit: &'static str,
    side: Side,
    /// Left out where no line has anything in it.
    seldom: bool,
}

impl Column {
    /// A column of words.
    pub const fn left(title: &'static str) -> Self {
        Column { title, unit: "", side: Side::Left, seldom: false }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str) -> Self {
        Column { title, unit: "", side: Side::Right, seldom: false }
    }

    /// The same column, left out where all of its cells are empty.
    pub const fn seldom(mut self) -> Self {
        self.seldom = true;
        self
    }

    /// The same column with a unit under its title.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }
}

/// A table of `N` columns, as wide as its cells need.
#[derive(Debug, Clone)]
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// An empty table.
    pub const fn new(columns: [Column; N]) -> Self {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a line of data.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    fn is_shown(&self, column: usize) -> bool {
        !self.columns[column].seldom || self.rows.iter().any(|row| !row[column].is_empty())
    }

    fn widths(&self) -> [usize; N] {
        std::array::from_fn(|i| {
            let heading = [self.columns[i].title, self.columns[i].unit].into_iter().map(width);
            heading.chain(self.rows.iter().map(|row| width(&row[i]))).max().unwrap_or(0)
        })
    }

    fn line(&self, mark: char, cells: [&str; N], widths: &[usize; N]) -> String {
        let mut line = String::from(mark);
        for (i, cell) in cells.into_iter().enumerate().filter(|(i, _)| self.is_shown(*i)) {
            let space = " ".repeat(widths[i] - width(cell));
            line += GAP;
            line += &match self.columns[i].side {
                Side::Left => format!("{cell}{space}"),
                Side::Right => format!("{space}{cell}"),
            };
        }
        line.trim_end().to_owned()
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        writeln!(f, "{}", self.line('#', self.columns.map(|c| c.title), &widths))?;
        if self.columns.iter().any(|column| !column.unit.is_empty()) {
            writeln!(f, "{}", self.line('#', self.columns.map(|c| c.unit), &widths))?;
        }
        for row in &self.rows {
            writeln!(f, "{}", self.line(' ', row.each_ref().map(String::as_str), &widths))?;
        }
        Ok(())
    }
}

/// Characters, which is what a terminal shows for every word and unit of ours.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new([
            Column::right("size").unit("(B)"),
            Column::left("algo"),
            Column::right("time").unit("(us)"),
            Column::left("note"),
        ]);
        table.row(["1024", "tree", "9.5", ""].map(str::to_owned));
        table.row(["1073741824", "nvls_tree", "12345.6", "NCCL"].map(str::to_owned));
        insta::assert_snapshot!(table.to_string(), @r"
        #        size  algo          time  note
        #         (B)                (us)
                 1024  tree           9.5
           1073741824  nvls_tree  12345.6  NCCL
        ");
    }

    #[test]
    fn a_seldom_column_needs_a_cell() {
        let mut table =
            Table::new([Column::left("size"), Column::right("threads").seldom(), Column::left("algo")]);
        table.row(["1K", "", "ring"].map(str::to_owned));
        assert_eq!(table.to_string(), "#  size  algo\n   1K    ring\n");
        table.row(["1K", "128", "ring"].map(str::to_owned));
        assert!(table.to_string().starts_with("#  size  threads  algo\n"), "{table}");
    }

    #[test]
    fn without_units_there_is_one_heading() {
        let mut table = Table::new([Column::left("cluster"), Column::right("µs")]);
        assert_eq!(table.to_string(), "#  cluster  µs\n");
        table.row(["dgx_a100", "7"].map(str::to_owned));
        assert_eq!(table.to_string(), "#  cluster   µs\n   dgx_a100   7\n");
    }
}
