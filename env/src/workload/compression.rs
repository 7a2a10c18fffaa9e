//! What compressed gradients look like on the wire, and what compressing them costs.
//!
//! Quantised values can be added on the way, so they stay an allreduce of fewer bytes. Sparse ones
//! sit at different positions on every rank, so they travel as an allgather, whose volume grows with
//! the ranks. Low-rank factors are two small allreduces.

use dynamiccl_spec::{Collective, Compression};

/// Floating-point operations that take as long as reading and writing one value, because memory and
/// not arithmetic limits such work: an A100 sustains about 140 TFLOP/s and moves about 0.2 × 10¹²
/// values of 4 + 4 bytes a second.
pub(super) const FLOPS_PER_VALUE: f64 = 700.0;

/// Bytes of the position of a value.
const INDEX_BYTES: u64 = 4;

/// What becomes of one buffer of gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// The calls that carry it, each with its bytes as NCCL counts them.
    pub calls: Vec<(Collective, u64)>,
    /// Floating-point operations, or as many as take the same time, to compress and decompress it.
    pub flops: f64,
}

impl Effective {
    /// Bytes that one rank contributes, over all calls.
    pub fn sent(&self, ranks: u32) -> u64 {
        let part = |&(collective, bytes): &(Collective, u64)| {
            if collective == Collective::AllGather { bytes / u64::from(ranks.max(1)) } else { bytes }
        };
        self.calls.iter().map(part).sum()
    }
}

/// The usual rate of a method, original bytes per byte that a rank sends, for values of this width.
pub fn usual_rate(compression: Compression, width: u32) -> f64 {
    let width = f64::from(width);
    match compression {
        Compression::Unknown | Compression::None => 1.0,
        Compression::Fp16 => width / 2.0,
        Compression::Int8 => width,
        Compression::Sign => width * 8.0,
        Compression::TopK => 1000.0,
        Compression::RandomK => 100.0,
        Compression::LowRank => 136.0,
        Compression::Combined => 117.0,
    }
}

/// What an allreduce of `bytes` in values of `width` bytes over `ranks` becomes. A `rate` of 0 is the
/// method's usual one; quantisation has no other.
pub fn effective(compression: Compression, rate: f64, bytes: u64, width: u32, ranks: u32) -> Effective {
    let usual = usual_rate(compression, width);
    let rate = if rate >= 1.0 { rate } else { usual };
    let values = bytes as f64 / f64::from(width);
    let reduced = |bytes: u64| vec![(Collective::AllReduce, bytes)];
    match compression {
        Compression::Unknown | Compression::None => Effective { calls: reduced(bytes), flops: 0.0 },
        Compression::Fp16 | Compression::Int8 | Compression::Sign => {
            let passes = if compression == Compression::Fp16 { 2.0 } else { 3.0 };
            let unchanged = usual <= 1.0;
            let flops = if unchanged { 0.0 } else { passes * FLOPS_PER_VALUE * values };
            Effective { calls: reduced(shrunk(bytes, usual).max(1)), flops }
        }
        Compression::TopK | Compression::RandomK | Compression::Combined => {
            let entry = match compression {
                // CocktailSGD sends 4 bits beside each position.
                Compression::Combined => INDEX_BYTES + 1,
                _ => INDEX_BYTES + u64::from(width),
            };
            let sent = shrunk(bytes, rate).div_ceil(entry).max(1) * entry;
            let passes = match compression {
                Compression::RandomK => 3.0,
                Compression::TopK => 8.0,
                _ => 10.0,
            };
            let spread = values / rate * f64::from(ranks);
            let calls = vec![(Collective::AllGather, sent * u64::from(ranks))];
            Effective { calls, flops: FLOPS_PER_VALUE * (passes * values + spread) }
        }
        Compression::LowRank => {
            // A square of as many values, and the rank whose two factors have the wanted size.
            let side = values.max(1.0).sqrt().ceil();
            let rank = (values / (rate * 2.0 * side)).floor().max(1.0);
            let factor = (side * rank) as u64 * u64::from(width);
            // Three products of the matrix with a factor; the norms in between are small.
            let flops = 6.0 * rank * values + FLOPS_PER_VALUE * 2.0 * values;
            Effective { calls: vec![(Collective::AllReduce, factor); 2], flops }
        }
    }
}

fn shrunk(bytes: u64, rate: f64) -> u64 {
    (bytes as f64 / rate).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 400 << 20;

    fn of(compression: Compression, ranks: u32) -> Effective {
        effective(compression, 0.0, BYTES, 4, ranks)
    }

    #[test]
    fn quantised_gradients_stay_an_allreduce_of_fewer_bytes() {
        for (compression, rate) in [(Compression::Fp16, 2), (Compression::Int8, 4), (Compression::Sign, 32)] {
            assert_eq!(of(compression, 8).calls, [(Collective::AllReduce, BYTES / rate)], "{compression}");
            assert!(of(compression, 8).flops > 0.0);
        }
        assert_eq!(of(Compression::None, 8).calls, [(Collective::AllReduce, BYTES)]);
        let half = effective(Compression::Fp16, 0.0, BYTES, 2, 8);
        assert_eq!((half.calls[0].1, half.flops), (BYTES, 0.0), "fp16 of fp16 is nothing new");
    }

    #[test]
    fn sparse_gradients_are_gathered_and_grow_with_the_ranks() {
        for (compression, rate) in
            [(Compression::TopK, 1000.0), (Compression::RandomK, 100.0), (Compression::Combined, 117.0)]
        {
            let [few, many] = [of(compression, 8), of(compression, 64)];
            assert_eq!(few.calls[0].0, Collective::AllGather);
            assert_eq!(few.calls[0].1 * 8, many.calls[0].1);
            assert_eq!(few.sent(8), many.sent(64));
            let seen = BYTES as f64 / few.sent(8) as f64;
            assert!((seen / rate - 1.0).abs() < 0.01, "{compression}: {seen}");
        }
        let told = effective(Compression::TopK, 50.0, BYTES, 4, 8);
        assert!((BYTES as f64 / told.sent(8) as f64 / 50.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn low_rank_gradients_are_two_small_allreduces() {
        let low = of(Compression::LowRank, 8);
        assert_eq!(low.calls.len(), 2);
        assert!(low.calls.iter().all(|call| call.0 == Collective::AllReduce));
        let rate = BYTES as f64 / low.sent(8) as f64;
        assert!(rate > 100.0 && rate < 180.0, "{rate}");
    }

    #[test]
    fn a_single_value_is_still_sent() {
        for &compression in Compression::ALL {
            let tiny = effective(compression, 0.0, 4, 4, 2);
            assert!(tiny.calls.iter().all(|call| call.1 > 0), "{compression}");
        }
    }
}
