//! Scratch.
use dynamiccl_agent::training::{Event, Setup, Training};
use dynamiccl_agent::{Config, learn::Device};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let config: Config = toml::from_str(
        &args.get(2).map_or(String::new(), |f| std::fs::read_to_string(f).unwrap_or_else(|_| f.clone())),
    )
    .unwrap();
    let seed: u64 = args.get(3).map_or(1, |s| s.parse().unwrap());
    let threads: usize = args.get(4).map_or(2, |s| s.parse().unwrap());
    let mut curriculum = Curriculum::load(&args[1]).unwrap();
    if let Some(steps) = args.get(5) {
        let steps: Vec<u64> = steps.split(',').map(|x| x.parse().unwrap()).collect();
        for (stage, most) in curriculum.stages.iter_mut().zip(steps.iter().cycle()) {
            let stage = Arc::make_mut(stage);
            stage.file.promotion.max_steps = *most;
            stage.file.promotion.min_steps = stage.file.promotion.min_steps.min(*most);
        }
    }
    if let Ok(calls) = std::env::var("CALLS") {
        for stage in &mut curriculum.stages {
            Arc::make_mut(stage).file.workload.calls = calls.parse().unwrap();
        }
    }
    let setup = Setup {
        curriculum,
        config,
        seed,
        threads,
        device: Device::Flex,
        constants: Arc::new(ConstantsFile::full()),
    };
    let mut training = Training::new(setup).unwrap();
    let began = Instant::now();
    let mut seconds = [0.0; 4];
    let mut n = 0;
    loop {
        match training.step().unwrap() {
            Event::Updated(u) => {
                n += 1;
                for (s, x) in seconds.iter_mut().zip([u.seconds.env, u.seconds.act, u.seconds.learn]) {
                    *s += x;
                }
                if n % 20 == 1 {
                    let l = &u.losses;
                    println!(
                        "{:>9} st{} {:6.1}s gain {:.4} dec {:.2} pol {:.4} val {:.3} ev {:.2} ent {:.3?} hind {:.4} est {:.3} g {:.3} kl {:.4} clip {:.3} ep {} |g| {:.2} time {:.1?}",
                        u.step,
                        u.stage,
                        began.elapsed().as_secs_f64(),
                        u.gain,
                        u.decided,
                        l.policy,
                        l.value,
                        u.explained_variance,
                        &l.entropy[1..4],
                        l.hindsight,
                        l.estimate,
                        l.gain,
                        l.divergence,
                        l.clipped,
                        u.epochs,
                        u.gradient,
                        seconds
                    );
                }
            }
            Event::Judged { step, stage, report, best, seconds: s } => {
                seconds[3] += s;
                let t = &report.tuners[0];
                let tiers: Vec<String> = t
                    .tiers
                    .iter()
                    .map(|t| {
                        format!(
                            "t{} {:.2}/{:.2} w{:.2}",
                            t.tier,
                            100.0 * t.figures.regret,
                            100.0 * t.figures.regret_hold,
                            t.figures.worst_cell
                        )
                    })
                    .collect();
                println!(
                    "== {step} stage {stage} {:.1}s best {best}: {} cov {:?} cum {:?}",
                    began.elapsed().as_secs_f64(),
                    tiers.join("  "),
                    t.overall.as_ref().unwrap().coverage,
                    t.overall.as_ref().unwrap().cumulative
                );
            }
            Event::Done { .. } => break,
            e => println!("{e:?}"),
        }
    }
    println!("{:.1}s {} steps {:?}", began.elapsed().as_secs_f64(), training.steps(), seconds);
}
