//! What is written into NCCL's table so that an entry wins.
//!
//! NCCL takes the smallest entry, of equals sometimes the first and sometimes the last, and tells its callers
//! the time that stands there. So it is the time that we believe in where that wins by itself, and otherwise
//! a little less than the next. Never 0 or less, never into an entry that NCCL has marked.

use dynamiccl_spec::Pair;

use super::call::RawTable;

/// How much less than the smallest other entry: enough to survive some arithmetic of NCCL's, too little to
/// mean anything.
const BELOW: f32 = 1.0 - 1.0 / 1024.0;

/// What makes this pair's entry win, if anything may; `micros` is what it is believed to take.
pub fn price(table: &RawTable, pair: Pair, micros: f32) -> Option<f32> {
    let own = table.known.get(pair)?;
    let others = table.known.available().filter(|&(other, _)| other != pair).map(|(_, us)| us);
    let smallest = others.fold(table.beyond, f32::min);
    if micros > 0.0 && micros < smallest {
        return Some(micros);
    }
    if smallest == f32::INFINITY {
        return (own > 0.0).then_some(own);
    }
    let below = smallest * BELOW;
    let below = if below < smallest { below } else { smallest.next_down() };
    (below > 0.0).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_policies::random::Random;
    use dynamiccl_spec::math::exp2;
    use dynamiccl_spec::{Algorithm, CostTable, Protocol};

    const RING: Pair = Pair::new(Algorithm::Ring, Protocol::LL);
    const TREE: Pair = Pair::new(Algorithm::Tree, Protocol::LL);

    fn table(ring: f32, tree: f32) -> RawTable {
        let mut known = CostTable::default();
        known.set(RING, ring);
        known.set(TREE, tree);
        RawTable { known, beyond: f32::INFINITY }
    }

    #[test]
    fn a_time_that_wins_is_written_as_it_is() {
        assert_eq!(price(&table(20.0, 10.0), RING, 9.0), Some(9.0));
        assert_eq!(price(&table(20.0, 10.0), RING, 10.0), Some(10.0 * BELOW));
        assert_eq!(price(&table(20.0, 10.0), RING, 15.0), Some(10.0 * BELOW));
        let newer = RawTable { beyond: 4.0, ..table(20.0, 10.0) };
        assert_eq!(price(&newer, RING, 9.0), Some(4.0 * BELOW));
    }

    #[test]
    fn what_is_no_time_is_never_written() {
        for micros in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(price(&table(20.0, 10.0), RING, micros), Some(10.0 * BELOW), "{micros}");
            assert_eq!(price(&table(20.0, -1.0), RING, micros), Some(20.0), "{micros}");
        }
        for unavailable in [-1.0, -1024.0, f32::NAN, f32::INFINITY] {
            assert_eq!(price(&table(unavailable, 10.0), RING, 5.0), None, "{unavailable}");
        }
        assert_eq!(price(&table(20.0, 0.0), RING, 5.0), None, "nothing is less than nothing");
        assert_eq!(price(&table(0.0, -1.0), RING, f32::NAN), None);
    }

    #[test]
    fn it_wins_strictly_whatever_stands_there() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let [ring, tree, micros] = [0; 3].map(|_| exp2(260.0 * random.uniform() - 135.0) as f32);
            let written = price(&table(ring, tree), RING, micros);
            let written = written.unwrap_or_else(|| panic!("{ring} {tree} {micros}"));
            assert!(written > 0.0 && written < tree, "{ring} {tree} {micros}: {written}");
        }
        let tiny = f32::from_bits(2);
        assert_eq!(price(&table(1.0, tiny), RING, 1.0), Some(f32::from_bits(1)));
        assert_eq!(price(&table(1.0, f32::from_bits(1)), RING, 1.0), None);
    }
}
