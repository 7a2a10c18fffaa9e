//! Rows of bits of one length, for chunks and for contributors.

/// A table of bit rows.
#[derive(Debug, Clone)]
pub struct Bits {
    words: usize,
    rows: Vec<u64>,
}

impl Bits {
    /// So many empty rows of so many bits.
    pub fn new(rows: usize, bits: usize) -> Self {
        let words = bits.div_ceil(64);
        Bits { words, rows: vec![0; rows * words] }
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> &[u64] {
        &self.rows[row * self.words..(row + 1) * self.words]
    }

    /// Sets a bit.
    #[inline]
    pub fn set(&mut self, row: usize, bit: usize) {
        self.rows[row * self.words + bit / 64] |= 1 << (bit % 64);
    }

    /// Whether a bit is set.
    #[inline]
    pub fn has(&self, row: usize, bit: usize) -> bool {
        self.rows[row * self.words + bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Adds the bits of one row to another.
    pub fn join(&mut self, into: usize, from: usize) {
        for word in 0..self.words {
            self.rows[into * self.words + word] |= self.rows[from * self.words + word];
        }
    }

    /// Whether two rows share a bit.
    pub fn meet(&self, a: usize, b: usize) -> bool {
        self.row(a).iter().zip(self.row(b)).any(|(a, b)| a & b != 0)
    }

    /// How many bits of a row are set.
    pub fn count(&self, row: usize) -> usize {
        self.row(row).iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The first bit from `start` on, around the end, that `mask(word)` has; `words` is the row's length.
#[inline]
pub fn first_from(start: usize, words: usize, mask: impl Fn(usize) -> u64) -> Option<usize> {
    let (first, shift) = (start / 64, start % 64);
    let high = mask(first) >> shift << shift;
    if high != 0 {
        return Some(first * 64 + high.trailing_zeros() as usize);
    }
    let after = (first + 1..words).chain(0..=first);
    after
        .map(|word| (word, mask(word)))
        .find(|(_, bits)| *bits != 0)
        .map(|(word, bits)| word * 64 + bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_apart_and_joined_on_demand() {
        let mut bits = Bits::new(3, 130);
        bits.set(0, 129);
        bits.set(1, 3);
        assert!(bits.has(0, 129) && !bits.has(1, 129) && !bits.meet(0, 1));
        bits.join(1, 0);
        assert!(bits.meet(0, 1) && bits.count(1) == 2 && bits.count(2) == 0);
    }

    #[test]
    fn the_first_bit_is_looked_for_around_the_end() {
        let row = [1_u64 << 5, 0, 1 << 1];
        let from = |start| first_from(start, 3, |word| row[word]);
        assert_eq!(
            [from(0), from(5), from(6), from(129), from(130)].map(Option::unwrap),
            [5, 5, 129, 129, 5]
        );
        assert_eq!(first_from(70, 3, |_| 0), None);
    }
}
