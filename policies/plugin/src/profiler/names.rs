//! NCCL's names of collectives, algorithms, protocols and data types, read without allocating.
//!
//! Profiler v1 gives NCCL's integers, later versions give strings; both end here as the words of ours.

use dynamiccl_spec::{Algorithm, Collective, Protocol};

/// The collectives that a tuner decides on, by NCCL's names; all others are left out.
pub fn collective(name: &[u8]) -> Option<Collective> {
    Some(match name {
        b"AllReduce" => Collective::AllReduce,
        b"AllGather" => Collective::AllGather,
        b"ReduceScatter" => Collective::ReduceScatter,
        b"Broadcast" => Collective::Broadcast,
        b"Reduce" => Collective::Reduce,
        _ => return None,
    })
}

/// A collective by NCCL's integer.
pub fn collective_of(id: u8) -> Option<Collective> {
    Collective::from_id(id.into()).filter(|of| of.is_tuned())
}

/// An algorithm.
pub fn algorithm(name: &[u8]) -> Option<Algorithm> {
    Some(match name {
        b"TREE" => Algorithm::Tree,
        b"RING" => Algorithm::Ring,
        b"COLLNET_DIRECT" => Algorithm::CollnetDirect,
        b"COLLNET_CHAIN" => Algorithm::CollnetChain,
        b"NVLS" => Algorithm::Nvls,
        b"NVLS_TREE" => Algorithm::NvlsTree,
        b"PAT" => Algorithm::Pat,
        _ => return None,
    })
}

/// A protocol.
pub fn protocol(name: &[u8]) -> Option<Protocol> {
    Some(match name {
        b"LL" => Protocol::LL,
        b"LL128" => Protocol::LL128,
        b"SIMPLE" => Protocol::Simple,
        _ => return None,
    })
}

/// Bytes of one element.
pub fn element_bytes(datatype: &[u8]) -> Option<u64> {
    Some(match datatype {
        b"ncclInt8" | b"ncclUint8" | b"ncclFloat8e4m3" | b"ncclFloat8e5m2" => 1,
        b"ncclFloat16" | b"ncclBfloat16" => 2,
        b"ncclInt32" | b"ncclUint32" | b"ncclFloat32" => 4,
        b"ncclInt64" | b"ncclUint64" | b"ncclFloat64" => 8,
        // NCCL has no name for its unsigned byte.
        b"Unknown" => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_integers_mean_the_same() {
        for (id, name) in
            ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"].iter().enumerate()
        {
            assert_eq!(collective(name.as_bytes()), collective_of(id as u8));
            assert!(collective_of(id as u8).is_some());
        }
        for id in 5..=u8::MAX {
            assert_eq!(collective_of(id), None);
        }
        let algorithms = ["TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"];
        for (id, name) in algorithms.iter().enumerate() {
            assert_eq!(algorithm(name.as_bytes()), Algorithm::from_id(id));
        }
        for (id, name) in ["LL", "LL128", "SIMPLE"].iter().enumerate() {
            assert_eq!(protocol(name.as_bytes()), Protocol::from_id(id));
        }
    }

    #[test]
    fn elements_have_their_size() {
        for (name, bytes) in [("ncclInt8", 1), ("ncclFloat8e5m2", 1), ("ncclBfloat16", 2), ("ncclFloat32", 4)]
        {
            assert_eq!(element_bytes(name.as_bytes()), Some(bytes), "{name}");
        }
        let odd = [&b"ncclFloat64"[..], b"Unknown", b"", b"half"].map(element_bytes);
        assert_eq!(odd, [Some(8), Some(1), None, None]);
    }

    #[test]
    fn what_no_tuner_decides_on_is_left_out() {
        for name in
            ["AlltoAll", "Gather", "Scatter", "Send", "Recv", "AllGatherV", "PutSignal", "Invalid", ""]
        {
            assert_eq!(collective(name.as_bytes()), None, "{name}");
        }
    }
}
