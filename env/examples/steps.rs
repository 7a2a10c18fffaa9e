//! temporary
use dynamiccl_env::{curriculum::Curriculum, gym::*, model::ConstantsFile, sim_env::SimEnv};
use std::sync::Arc;
use std::time::Instant;
fn main() {
    let constants = Arc::new(ConstantsFile::full());
    for name in ["smoke", "stage1", "stage2", "stage3"] {
        let stage = Curriculum::load(name).unwrap().stages[0].clone();
        for threads in [1, 2] {
            let mut vec =
                VecEnv::new((0..64).map(|_| SimEnv::new(stage.clone(), constants.clone())), threads);
            let t = Instant::now();
            vec.reset(1).unwrap();
            let reset = t.elapsed();
            let t = Instant::now();
            let n = 4000;
            let sums = vec.in_shards(|first, slots| {
                let mut actors: Vec<_> =
                    (0..slots.len()).map(|i| RandomActor::new((first + i) as u64)).collect();
                let mut sum = 0.0;
                let mut ends = 0;
                for _ in 0..n {
                    for (slot, actor) in slots.iter_mut().zip(&mut actors) {
                        let a = actor.act(slot.observation());
                        let s = slot.step(&a).unwrap();
                        sum += s.transition.reward;
                        ends += s.begun.is_some() as u32;
                    }
                }
                (sum, ends)
            });
            let s = t.elapsed().as_secs_f64();
            println!(
                "{name} threads {threads}: reset {:.0} us each, {:.0} steps/s, mean reward {:?}",
                reset.as_secs_f64() * 1e6 / 64.0,
                64.0 * n as f64 / s,
                sums.iter().map(|x| (x.0 / (64.0 * n as f64), x.1)).collect::<Vec<_>>()
            );
        }
    }
}
