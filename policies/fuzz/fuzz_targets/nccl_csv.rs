//! Whatever a table holds, reading it ends well; and printing what was read changes nothing.
#![no_main]

use dynamiccl_policies::nccl_csv::Table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(table) = Table::parse(text) {
        assert_eq!(Table::parse(&table.to_string()).as_ref(), Ok(&table));
    }
});
