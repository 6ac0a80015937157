//! A table of text with a header and aligned columns, as cqlsh draws it.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

/// A column of a grid.
pub struct GridColumn {
    pub name: String,
    pub leans_left: bool,
}

/// A table that is written in pieces. Its columns only become wider.
pub struct Grid {
    columns: Vec<GridColumn>,
    widths: Vec<usize>,
}

impl Grid {
    pub fn new(columns: Vec<GridColumn>) -> Grid {
        let widths = columns.iter().map(|column| column.name.width()).collect();
        Grid { columns, widths }
    }

    /// Widens the columns to the cells of these rows.
    pub fn fit(&mut self, rows: &[Vec<String>]) {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
    }

    /// Writes the names of the columns and the line below them.
    pub fn write_header(&self, out: &mut dyn Write) -> io::Result<()> {
        let names = self.columns.iter().zip(&self.widths).map(|(column, width)| {
            let free = width.saturating_sub(column.name.width());
            let left = free / 2;
            format!(" {:left$}{}{:right$} ", "", column.name, "", right = free - left)
        });
        writeln!(out, "{}", names.collect::<Vec<_>>().join("|"))?;
        let lines = self.widths.iter().map(|width| "-".repeat(width + 2));
        writeln!(out, "{}", lines.collect::<Vec<_>>().join("+"))
    }

    /// Writes rows, with the current widths of the columns.
    pub fn write_rows(&self, rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            let cells = row.iter().zip(&self.columns).zip(&self.widths);
            let cells = cells.map(|((cell, column), width)| {
                let free = width.saturating_sub(cell.width());
                match column.leans_left {
                    true => format!(" {cell}{:free$} ", ""),
                    false => format!(" {:free$}{cell} ", ""),
                }
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("|"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_and_lean() {
        let column = |name: &str, leans_left| GridColumn {
            name: name.to_owned(),
            leans_left,
        };
        let mut grid = Grid::new(vec![column("k", false), column("name", true)]);
        let rows = vec![
            vec!["10".to_owned(), "Ann".to_owned()],
            vec!["7".to_owned(), "東京都".to_owned()],
        ];
        grid.fit(&rows);
        let mut out = Vec::new();
        grid.write_header(&mut out).unwrap();
        grid.write_rows(&rows, &mut out).unwrap();
        let expected = " k  |  name  \n----+--------\n 10 | Ann    \n  7 | 東京都 \n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
