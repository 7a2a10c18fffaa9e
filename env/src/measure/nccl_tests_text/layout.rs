//! The columns of an nccl-tests table, which changed with its versions.
//!
//! Up to 2.11 each test printed only the columns that mean something for it (`redop`, `root`) and an
//! `error` column; from 2.13 on all print `redop`, `root` and `#wrong`; 2.19 can add four columns of
//! per-iteration times to each half, and a time stamp may close the row.

/// What a column before the times holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    /// Bytes.
    Size,
    /// Elements.
    Count,
    /// Data type.
    Type,
    /// Reduction operation.
    Redop,
    /// Root rank, −1 for none.
    Root,
}

/// The columns of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Columns before the times.
    pub(super) lead: Vec<Lead>,
    /// Columns of one half, time first.
    half: Vec<String>,
    /// Halves: out-of-place alone, or in-place after it.
    halves: usize,
    /// Whether a date and a time of day close each row.
    stamped: bool,
    /// Whether the time is that of the launching CPU thread.
    pub(super) cpu_time: bool,
}

/// The times of one half of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Half {
    /// Time in µs.
    pub(super) time: f64,
    /// Bus bandwidth ÷ algorithm bandwidth, where both are large enough to say.
    pub(super) bus_ratio: Option<f64>,
    /// Whether the test counted wrong elements.
    pub(super) wrong: bool,
}

impl Layout {
    /// The layout that a header line announces, if it is one.
    pub(super) fn from_header(line: &str) -> Option<Layout> {
        let words: Vec<&str> = line.strip_prefix('#')?.split_whitespace().collect();
        let is_time = |word: &&str| matches!(*word, "time" | "cputime");
        let first = words.iter().position(is_time)?;
        let lead = words[..first].iter().map(|w| lead_of(w)).collect::<Option<Vec<_>>>()?;
        let stamped = words.last() == Some(&"timestamp");
        let columns = &words[first..words.len() - usize::from(stamped)];
        let halves = columns.iter().filter(|w| is_time(w)).count();
        let width = columns.len() / halves;
        let regular = lead.first() == Some(&Lead::Size)
            && columns.len() == halves * width
            && (0..halves).all(|h| is_time(&columns[h * width]))
            && halves <= 2;
        regular.then(|| Layout {
            lead,
            half: columns[..width].iter().map(|w| (*w).to_owned()).collect(),
            halves,
            stamped,
            cpu_time: words[first] == "cputime",
        })
    }

    /// The layout that the tokens of a whole row show where no header line is left.
    pub(super) fn from_row(tokens: &[String]) -> Option<Layout> {
        let mut lead = vec![Lead::Size, Lead::Count, Lead::Type];
        let rest = tokens.get(3..)?;
        let redop = rest.first().is_some_and(|t| is_word(t));
        if redop {
            lead.push(Lead::Redop);
        }
        let rest = rest.get(usize::from(redop)..)?;
        // A root is a whole number; a time always has a point or is followed by two bandwidths.
        let root = rest.first().is_some_and(|t| t.parse::<i64>().is_ok()) && rest.len() % 4 == 1;
        if root {
            lead.push(Lead::Root);
        }
        let columns = rest.len() - usize::from(root);
        let half = ["time", "algbw", "busbw", "#wrong"].map(str::to_owned).to_vec();
        let layout = Layout { lead, half, halves: columns / 4, stamped: false, cpu_time: false };
        (matches!(columns, 4 | 8) && layout.starts_row(tokens)).then_some(layout)
    }

    /// The layout of the row that these tokens begin, if they begin one. Tests without a reduction
    /// leave `redop` blank in some versions although the header names it.
    pub(super) fn of_row(&self, tokens: &[String]) -> Option<Layout> {
        let blank = || {
            let mut layout = self.clone();
            layout.lead.retain(|&lead| lead != Lead::Redop);
            layout
        };
        [self.clone(), blank()].into_iter().find(|layout| layout.starts_row(tokens))
    }

    /// Tokens of a whole row.
    pub(super) fn width(&self) -> usize {
        self.lead.len() + self.halves * self.half.len() + 2 * usize::from(self.stamped)
    }

    /// This layout without its in-place half, if it has one.
    pub(super) fn out_of_place_only(&self) -> Option<Layout> {
        (self.halves == 2).then(|| Layout { halves: 1, stamped: false, ..self.clone() })
    }

    /// Whether these tokens begin a row: the leading columns, as far as they are there, all fit.
    fn starts_row(&self, tokens: &[String]) -> bool {
        let fits = |(lead, token): (&Lead, &String)| match lead {
            Lead::Size | Lead::Count => token.parse::<u64>().is_ok(),
            Lead::Type | Lead::Redop => is_word(token),
            Lead::Root => token.parse::<i64>().is_ok(),
        };
        // With fewer than three columns a stray number would look like a row.
        let enough = self.lead.len().min(3);
        tokens.len() >= enough && self.lead.iter().zip(tokens).all(fits)
    }

    /// The token of a leading column.
    pub(super) fn lead_token<'a>(&self, wanted: Lead, tokens: &'a [String]) -> Option<&'a str> {
        let at = self.lead.iter().position(|&l| l == wanted)?;
        tokens.get(at).map(String::as_str)
    }

    /// The halves of a whole row; the name of the column and the token where one is bad.
    pub(super) fn halves(&self, tokens: &[String]) -> Result<Vec<Half>, (String, String)> {
        let columns = &tokens[self.lead.len()..];
        columns.chunks_exact(self.half.len()).take(self.halves).map(|half| self.half(half)).collect()
    }

    fn half(&self, tokens: &[String]) -> Result<Half, (String, String)> {
        let number = |at: usize| -> Result<f64, (String, String)> {
            let value = tokens[at].parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
            value.ok_or_else(|| (self.half[at].clone(), tokens[at].clone()))
        };
        let column = |name: &str| self.half.iter().position(|h| h == name);
        let bandwidth = |name| column(name).map(number).transpose();
        let (alg, bus) = (bandwidth("algbw")?, bandwidth("busbw")?);
        // Two printed decimals: below 1 GB/s the ratio is mostly rounding.
        let bus_ratio = alg.zip(bus).filter(|(alg, _)| *alg >= 1.0).map(|(alg, bus)| bus / alg);
        let counted = column("#wrong").filter(|&at| tokens[at] != "N/A");
        let wrong = counted.map(number).transpose()?.is_some_and(|count| count > 0.0);
        Ok(Half { time: number(0)?, bus_ratio, wrong })
    }
}

fn lead_of(word: &str) -> Option<Lead> {
    Some(match word {
        "size" => Lead::Size,
        "count" => Lead::Count,
        "type" => Lead::Type,
        "redop" => Lead::Redop,
        "root" => Lead::Root,
        _ => return None,
    })
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic())
        && token.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn headers_of_every_generation() {
        for (header, width) in [
            ("#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error", 11),
            ("#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error", 12),
            ("#  size  count  type  root  time  algbw  busbw  error  time  algbw  busbw  error", 12),
            ("#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong", 13),
            (
                "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong timestamp",
                15,
            ),
            (
                "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min i_max i_p99 i_cv%",
                21,
            ),
        ] {
            assert_eq!(Layout::from_header(header).map(|l| l.width()), Some(width), "{header}");
        }
        assert_eq!(Layout::from_header("#  (B)  (elements)  (us)"), None);
        assert!(
            Layout::from_header("# size count type cputime algbw busbw error").is_some_and(|l| l.cpu_time)
        );
    }

    #[test]
    fn a_row_without_a_header_shows_its_layout() {
        for (row, lead) in [
            ("8 2 float sum -1 9.1 0.00 0.00 0 9.2 0.00 0.00 N/A", 5),
            ("8 2 float sum 9.1 0.00 0.00 0e+00 9.2 0.00 0.00 0e+00", 4),
            ("8 2 float 0 9.1 0.00 0.00 0e+00 9.2 0.00 0.00 0e+00", 4),
            ("8 2 float 9.1 0.00 0.00 0e+00 9.2 0.00 0.00 0e+00", 3),
        ] {
            let layout = Layout::from_row(&tokens(row)).expect(row);
            assert_eq!((layout.lead.len(), layout.halves), (lead, 2), "{row}");
        }
        assert_eq!(Layout::from_row(&tokens("8 2 float sum -1 9.1 0.00")), None);
    }
}
