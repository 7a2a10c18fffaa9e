//! The speeds that NCCL tries, in GB/s per channel (`search.cc` of 2.30.7).

const INTRA: &[f32] = &[40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0];
const INTER: &[f32] = &[
    48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12,
];
const HOPPER_INTRA: &[f32] = &[60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0];
const HOPPER_INTER: &[f32] =
    &[48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12];
const BLACKWELL_INTRA: &[f32] = &[90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0];
const BLACKWELL_INTER: &[f32] = &[
    96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2,
    0.24, 0.12,
];

/// The speeds for a compute capability, fast ones first.
pub(super) fn list(sm: u32, inter: bool) -> &'static [f32] {
    match (sm, inter) {
        (100.., true) => BLACKWELL_INTER,
        (100.., false) => BLACKWELL_INTRA,
        (90..100, true) => HOPPER_INTER,
        (90..100, false) => HOPPER_INTRA,
        (_, true) => INTER,
        (_, false) => INTRA,
    }
}
