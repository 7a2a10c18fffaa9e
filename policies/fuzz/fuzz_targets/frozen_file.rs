//! Whatever a file holds, reading it ends well; and what can be read is written as it was.
#![no_main]

use dynamiccl_policies::frozen::Frozen;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frozen) = Frozen::read(bytes) {
        let written = frozen.to_bytes();
        assert_eq!(Frozen::read(&written).as_ref(), Ok(&frozen));
    }
});
